"""DBOS: workflows on a queue in PostgreSQL, run by a process of their own."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import sqlalchemy
from dbos import DBOS, DBOSClient, EnqueueOptions
from gauge import Figures, Order, read_order, running, wait_until

NAME = "bench"
VERSION = "1"
POLL_SECONDS = 0.001
CONCURRENCY = 100
HOPS = 50
BATCH = 100  # there is no call for many, but one transaction can hold many calls
SUBMITTERS = 2
OPEN = "SELECT 1 FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') LIMIT 1"


@DBOS.step()
def look_at_clock() -> float:
    """A step that does nothing."""
    return time.time()


@DBOS.step()
def pass_on(value: int) -> int:
    """A step with a small result."""
    return value + 1


@DBOS.workflow()
def job() -> None:
    """A task that does nothing."""


@DBOS.workflow()
def chain3() -> int:
    """Three steps in a row, in the process of the workflow."""
    return pass_on(pass_on(pass_on(0)))


@DBOS.workflow()
def steps() -> list[float]:
    """Many steps in a row, in the process of the workflow."""
    return [look_at_clock() for _ in range(HOPS)]


@DBOS.workflow()
def child() -> float:
    """A task that does nothing, for a parent."""
    return time.time()


@DBOS.workflow()
def children() -> list[float]:
    """Many tasks in a row, each through the queue."""
    return [
        DBOS.enqueue_workflow(NAME, child).get_result(polling_interval_sec=POLL_SECONDS)
        for _ in range(HOPS)
    ]


def work(url: str) -> None:
    """The process that runs workflows."""
    DBOS(
        config={
            "name": NAME,
            "system_database_url": url,
            "application_version": VERSION,
            "log_level": "WARNING",
        }
    )
    DBOS.launch()
    DBOS.register_queue(NAME, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL_SECONDS)
    while True:
        time.sleep(3_600)


class Bench:
    """The client's side."""

    def __init__(self, order: Order, watcher: psycopg.Connection) -> None:
        self._client = DBOSClient(system_database_url=order.url)
        self._engine = sqlalchemy.create_engine(order.url.replace("://", "+psycopg://"))
        self._watcher = watcher

    def seconds_of(self, workflow: str, count: int) -> float:
        """Submit many and see them end."""
        batches = [min(BATCH, count - first) for first in range(0, count, BATCH)]
        begin = time.perf_counter()
        with ThreadPoolExecutor(SUBMITTERS) as threads:
            list(threads.map(lambda size: self._submit(workflow, size), batches))
        wait_until(lambda: self._watcher.execute(OPEN).fetchone() is None)
        return time.perf_counter() - begin

    def result_of(self, workflow: str) -> list[float]:
        """Submit one and see what it returns."""
        handle = self._client.enqueue(_options(workflow))
        return handle.get_result(polling_interval_sec=POLL_SECONDS)

    def _submit(self, workflow: str, count: int) -> None:
        with self._engine.begin() as transaction:
            for _ in range(count):
                self._client.enqueue_in_transaction(transaction, _options(workflow))


def _options(workflow: str) -> EnqueueOptions:
    return {
        "workflow_name": workflow,
        "queue_name": NAME,
        "app_version": VERSION,
        "application_name": NAME,
    }


def drive(order: Order) -> None:
    """Measure."""
    figures = Figures(order)
    with (
        running([[__file__, "work", order.url]], order.folder) as workers,
        psycopg.connect(order.url, autocommit=True) as watcher,
    ):
        wait_until(lambda: _queue_exists(watcher))
        bench = Bench(order, watcher)
        bench.result_of("steps")
        bench.seconds_of("job", 200)
        figures.add_weight(worker.pid for worker in workers)
        jobs, chains = order.size(3_000, 500), order.size(1_000, 200)
        for _ in range(order.repeats):
            figures.add_rate("jobs", jobs, bench.seconds_of("job", jobs))
            figures.add_rate("chain3", 3 * chains, bench.seconds_of("chain3", chains))
            figures.add_hops("hop", [bench.result_of("children") for _ in range(2)])
            figures.add_hops("hop-steps", [bench.result_of("steps") for _ in range(4)])
    figures.answer()


def _queue_exists(watcher: psycopg.Connection) -> bool:
    try:
        return watcher.execute("SELECT 1 FROM dbos.queues").fetchone() is not None
    except psycopg.errors.UndefinedTable:
        return False


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(sys.argv[2])
    else:
        drive(read_order())
