"""What Prometheus reads: counted from facts as they pass by, and looked up when it asks.

Every api process tells the numbers of the whole fleet since it started: scrape one of them, or take
the greatest. A job is a task, whichever way it was submitted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.utils import floatToGoString

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

_BUCKETS_MICROS = [round(seconds * SECOND) for seconds in BUCKETS]
_COUNTED = frozenset({FactType.TASK_READY, FactType.TASK_COMPLETED, FactType.TASK_FAILED})


class Meter:
    """The numbers of one namespace; plain ones, as several facts of every task pass by here."""

    def __init__(self) -> None:
        self._jobs: dict[str, int] = {}
        self._successes = 0
        self._failures = 0
        self._latency_counts = [0] * (len(BUCKETS) + 1)  # the last one: longer than all buckets
        self._latency_micros = 0

    def hear(self, fact: Fact) -> None:
        """Count what a fact about a task tells."""
        kind = fact.type
        if kind is FactType.TASK_COMPLETED:
            self._successes += 1
            if fact.started_at is not None:
                took = fact.at - fact.started_at
                self._latency_counts[bisect_left(_BUCKETS_MICROS, took)] += 1
                self._latency_micros += took
        elif kind is FactType.TASK_FAILED:
            self._failures += 1
        elif kind is FactType.TASK_READY and fact.epoch == 0:
            executor = fact.executor or "unknown"
            self._jobs[executor] = self._jobs.get(executor, 0) + 1

    def text(self, counts: Overview, workers: Sequence[WorkerRow]) -> bytes:
        """Everything, in the text format of Prometheus."""
        registry = CollectorRegistry()
        registry.register(_Numbers([*self._counters(), self._latency(), *_gauges(counts, workers)]))
        return generate_latest(registry)

    def _counters(self) -> Iterator[Metric]:
        jobs = CounterMetricFamily("jobs", "Jobs that became ready to run.", labels=["type"])
        for executor, count in self._jobs.items():
            jobs.add_metric([executor], count)
        yield jobs
        yield CounterMetricFamily("jobs_success", "Jobs that succeeded.", value=self._successes)
        yield CounterMetricFamily("jobs_failed", "Jobs that failed for good.", value=self._failures)

    def _latency(self) -> Metric:
        bounds = [*map(floatToGoString, BUCKETS), "+Inf"]
        return HistogramMetricFamily(
            "job_latency_seconds",
            "From the start of a job's last attempt to its success.",
            buckets=list(zip(bounds, accumulate(self._latency_counts), strict=True)),
            sum_value=self._latency_micros / SECOND,
        )


class _Numbers:
    """What a registry asks for its metrics."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        """All of them."""
        return self._metrics


def _gauges(counts: Overview, workers: Sequence[WorkerRow]) -> Iterator[Metric]:
    yield GaugeMetricFamily("queue_depth", "Jobs that wait for a free slot.", value=counts.ready)
    yield GaugeMetricFamily(
        "dead_letter_depth", "Jobs among the dead letters.", value=counts.dead_letters
    )
    busy = GaugeMetricFamily("worker_busy", "Slots of a worker that are taken.", labels=["worker"])
    for name, slots in {worker.session.worker: worker.busy for worker in workers}.items():
        busy.add_metric([name], slots)
    yield busy


class Meters:
    """The numbers of every namespace that something happened in."""

    def __init__(self) -> None:
        self._meters: dict[str, Meter] = {}

    def hear(self, facts: Sequence[Fact]) -> None:
        """Count what these facts tell; the task that makes a workflow's output is no job."""
        for fact in facts:
            if fact.type in _COUNTED and fact.task != OUTPUT_ID:
                self.of(fact.namespace).hear(fact)

    def of(self, namespace: str) -> Meter:
        """The numbers of one namespace."""
        meter = self._meters.get(namespace)
        if meter is None:
            meter = self._meters[namespace] = Meter()
        return meter
