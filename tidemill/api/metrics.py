"""What Prometheus reads: counted from facts as they pass by, and looked up when it asks.

Every api process tells the numbers of the whole fleet since it started: scrape one of them, or take
the greatest. A job is a task, whichever way it was submitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest

from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import SECOND
from tidemill.domain.workflow import OUTPUT_ID
from tidemill.ports.queries import Overview, WorkerRow

BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    300,
    3600,
)

disable_created_metrics()  # type: ignore[no-untyped-call]  # when a counter began is of no use to anybody here


class Meter:
    """The numbers of one namespace."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._jobs = Counter("jobs", "Jobs that became ready to run.", ["type"], registry=registry)
        self._successes = Counter("jobs_success", "Jobs that succeeded.", registry=registry)
        self._failures = Counter("jobs_failed", "Jobs that failed for good.", registry=registry)
        self._latency = Histogram(
            "job_latency_seconds",
            "From the start of a job's last attempt to its success.",
            buckets=BUCKETS,
            registry=registry,
        )
        self._queue = Gauge("queue_depth", "Jobs that wait for a free slot.", registry=registry)
        self._dead = Gauge("dead_letter_depth", "Jobs among the dead letters.", registry=registry)
        self._busy = Gauge(
            "worker_busy", "Slots of a worker that are taken.", ["worker"], registry=registry
        )

    def hear(self, fact: Fact) -> None:
        """Count what a fact about a task tells."""
        match fact.type:
            case FactType.TASK_READY if fact.epoch == 0:
                self._jobs.labels(fact.executor or "unknown").inc()
            case FactType.TASK_COMPLETED:
                self._successes.inc()
                if fact.started_at is not None:
                    self._latency.observe((fact.at - fact.started_at) / SECOND)
            case FactType.TASK_FAILED:
                self._failures.inc()

    def text(self, counts: Overview, workers: Sequence[WorkerRow]) -> bytes:
        """Everything, in the text format of Prometheus."""
        self._queue.set(counts.ready)
        self._dead.set(counts.dead_letters)
        self._busy.clear()
        for worker in workers:
            self._busy.labels(worker.session.worker).set(worker.busy)
        return generate_latest(self._registry)


class Meters:
    """The numbers of every namespace that something happened in."""

    def __init__(self) -> None:
        self._meters: dict[str, Meter] = {}

    def hear(self, facts: Sequence[Fact]) -> None:
        """Count what these facts tell; the task that makes a workflow's output is no job."""
        for fact in facts:
            if fact.task is not None and fact.task != OUTPUT_ID:
                self.of(fact.namespace).hear(fact)

    def of(self, namespace: str) -> Meter:
        """The numbers of one namespace."""
        meter = self._meters.get(namespace)
        if meter is None:
            meter = self._meters[namespace] = Meter()
        return meter
