"""Dramatiq: messages in Redis, run by a worker with threads."""

from __future__ import annotations

import os
import time

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from gauge import Figures, Order, read_order, running, wait_until

ADDRESS = "BENCH_PEER_URL"
URL = os.environ.get(ADDRESS) or read_order().url
MESSAGES = "dramatiq:default.msgs"  # a message leaves this one when it is acknowledged
HOPS = 50
PROCESSES = 2
THREADS = 8

broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="job")
def job() -> None:
    """A task that does nothing."""


@dramatiq.actor(actor_name="pass_on")
def pass_on(value: int) -> int:
    """A task with a small result, which the pipeline passes on."""
    return value + 1


@dramatiq.actor(actor_name="hop", store_results=True)
def hop(moments: list[float]) -> list[float]:
    """A task that adds when it ran."""
    return [*moments, time.time()]


class Bench:
    """The client's side."""

    def __init__(self, order: Order) -> None:
        self._redis = redis.Redis.from_url(order.url)

    def seconds_of_jobs(self, count: int) -> float:
        """Submit many and see them end."""
        begin = time.perf_counter()
        for _ in range(count):
            job.send()
        wait_until(self._all_ended)
        return time.perf_counter() - begin

    def seconds_of_chains(self, count: int) -> float:
        """Submit many pipelines and see them end."""
        begin = time.perf_counter()
        for _ in range(count):
            (pass_on.message(0) | pass_on.message() | pass_on.message()).run()
        wait_until(self._all_ended)
        return time.perf_counter() - begin

    def moments(self) -> list[float]:
        """When the tasks of one pipeline ran."""
        row = dramatiq.pipeline([hop.message([]), *(hop.message() for _ in range(HOPS - 1))])
        return list(row.run().get_result(block=True, timeout=60_000))

    def _all_ended(self) -> bool:
        return not self._redis.hlen(MESSAGES)


def drive(order: Order) -> None:
    """Measure."""
    figures = Figures(order)
    command = ["-m", "dramatiq", "dramatiq_driver"]
    command += ["--processes", str(PROCESSES), "--threads", str(THREADS)]
    with running([command], order.folder, {ADDRESS: order.url}) as workers:
        bench = Bench(order)
        bench.moments()
        bench.seconds_of_jobs(200)
        if not order.variant:
            figures.add_weight(worker.pid for worker in workers)
        jobs = order.size(10_000, 1_000)
        for _ in range(order.repeats):
            figures.add_rate("jobs", jobs, bench.seconds_of_jobs(jobs))
        if not order.variant:
            _measure_more(bench, figures)
    figures.answer()


def _measure_more(bench: Bench, figures: Figures) -> None:
    """What need not be repeated on another kind of server."""
    chains = figures.order.size(2_000, 300)
    for _ in range(figures.order.repeats):
        figures.add_rate("chain3", 3 * chains, bench.seconds_of_chains(chains))
        figures.add_hops("hop", [bench.moments() for _ in range(4)])


if __name__ == "__main__":
    drive(read_order())
