"""Celery: messages in Redis, run by two workers with a pool of threads each."""

from __future__ import annotations

import os
import time

import redis
from celery import Celery, chain
from gauge import Figures, Order, read_order, running, wait_until

QUEUE = "celery"
UNACKNOWLEDGED = "unacked"
HOPS = 50
WORKERS = 2
CONCURRENCY = 10
PREFETCH = 10
POOL = "threads"  # for work that does nothing, faster than its default of processes
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
ADDRESS = "BENCH_PEER_URL"

app = Celery("celery_driver", broker=os.environ.get(ADDRESS), backend=os.environ.get(ADDRESS))
app.conf.update(
    worker_prefetch_multiplier=PREFETCH,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="job")
def job() -> None:
    """A task that does nothing."""


@app.task(name="job_late", acks_late=True, reject_on_worker_lost=True)
def job_late() -> None:
    """A task that does nothing, and that runs again when its worker is killed."""


@app.task(name="job_result", ignore_result=False)
def job_result() -> None:
    """A task that does nothing, and whose end is written down."""


@app.task(name="pass_on")
def pass_on(value: int) -> int:
    """A task with a small result."""
    return value + 1


@app.task(name="hop", ignore_result=False)
def hop(moments: list[float]) -> list[float]:
    """A task that adds when it ran; results of the chain are what the client waits for."""
    return [*moments, time.time()]


class Bench:
    """The client's side."""

    def __init__(self, order: Order) -> None:
        self._redis = redis.Redis.from_url(order.url)

    def seconds_of(self, name: str, count: int) -> float:
        """Submit many tasks over one connection and see them end."""
        begin = time.perf_counter()
        with app.producer_pool.acquire(block=True) as producer:
            for _ in range(count):
                app.tasks[name].apply_async(producer=producer)
        wait_until(self._all_ended)
        return time.perf_counter() - begin

    def seconds_of_chains(self, count: int) -> float:
        """Submit many chains over one connection and see them end."""
        three = chain(pass_on.s(0), pass_on.s(), pass_on.s())
        begin = time.perf_counter()
        with app.producer_pool.acquire(block=True) as producer:
            for _ in range(count):
                three.apply_async(producer=producer)
        wait_until(self._all_ended)
        return time.perf_counter() - begin

    def moments(self) -> list[float]:
        """When the tasks of one chain ran."""
        row = chain(hop.s([]), *[hop.s()] * (HOPS - 1))
        return list(row.apply_async().get(timeout=60))

    def _all_ended(self) -> bool:
        """Nothing waits and nothing is held: seen twice, as a message moves in two steps."""
        return self._is_empty() and self._is_empty()

    def _is_empty(self) -> bool:
        return not self._redis.llen(QUEUE) and not self._redis.hlen(UNACKNOWLEDGED)


def drive(order: Order) -> None:
    """Measure."""
    figures = Figures(order)
    app.conf.update(broker_url=order.url, result_backend=order.url)
    command = ["-m", "celery", "-A", "celery_driver", "worker", "-P", POOL, "-l", "WARNING"]
    command += ["-c", str(CONCURRENCY), *QUIET]
    commands = [[*command, "-n", f"worker{number}@%h"] for number in range(WORKERS)]
    with running(commands, order.folder, {ADDRESS: order.url}) as workers:
        bench = Bench(order)
        bench.moments()
        bench.seconds_of("job", 200)
        if not order.variant:
            figures.add_weight(worker.pid for worker in workers)
        jobs = order.size(5_000, 1_000)
        for _ in range(order.repeats):
            figures.add_rate("jobs", jobs, bench.seconds_of("job", jobs))
        if not order.variant:
            _measure_more(bench, figures, jobs)
    figures.answer()


def _measure_more(bench: Bench, figures: Figures, jobs: int) -> None:
    """What need not be repeated on another kind of server."""
    chains = figures.order.size(1_500, 300)
    for _ in range(figures.order.repeats):
        figures.add_rate("jobs-late", jobs, bench.seconds_of("job_late", jobs))
        figures.add_rate("jobs-results", jobs, bench.seconds_of("job_result", jobs))
        figures.add_rate("chain3", 3 * chains, bench.seconds_of_chains(chains))
        figures.add_hops("hop", [bench.moments() for _ in range(4)])


if __name__ == "__main__":
    drive(read_order())
