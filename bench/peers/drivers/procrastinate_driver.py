"""Procrastinate: jobs in PostgreSQL, run by an asynchronous worker in a process of its own."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import psycopg
from gauge import Figures, Order, read_order, running, wait_until
from procrastinate import App, PsycopgConnector

URL = sys.argv[2] if sys.argv[1] == "work" else read_order().url
CONCURRENCY = 30
POLL_SECONDS = 0.02  # a notification that comes too early is not repeated
POOL = 10
HOPS = 50
BATCH = 1_000
OPEN = "SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing') LIMIT 1"

app = App(connector=PsycopgConnector(conninfo=URL, min_size=POOL, max_size=POOL))


@app.task(name="job")
async def job() -> None:
    """A task that does nothing."""


@app.task(name="hop")
async def hop(moments: list[float], path: str) -> None:
    """A task that defers the next one, until there were enough."""
    moments = [*moments, time.time()]
    if len(moments) < HOPS:
        await hop.defer_async(moments=moments, path=path)
    else:
        _write_whole(Path(path), " ".join(map(str, moments)))


def _write_whole(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(text)
    unfinished.rename(path)


async def work() -> None:
    """The process that runs tasks."""
    async with app.open_async():
        await app.run_worker_async(
            concurrency=CONCURRENCY, fetch_job_polling_interval=POLL_SECONDS, wait=True
        )


async def drive(order: Order) -> None:
    """Measure."""
    figures = Figures(order)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with (
            running([[__file__, "work", order.url]], order.folder) as workers,
            psycopg.connect(order.url, autocommit=True) as watcher,
        ):
            await _seconds_of_jobs(watcher, 200)
            figures.add_weight(worker.pid for worker in workers)
            jobs = order.size(4_000, 500)
            for _ in range(order.repeats):
                figures.add_rate("jobs", jobs, await _seconds_of_jobs(watcher, jobs))
                chains = [await _chain(order.folder / "moments") for _ in range(4)]
                figures.add_hops("hop", chains)
    figures.answer()


async def _seconds_of_jobs(watcher: psycopg.Connection, count: int) -> float:
    begin = time.perf_counter()
    for first in range(0, count, BATCH):
        await job.batch_defer_async(*[{}] * min(BATCH, count - first))
    wait_until(lambda: watcher.execute(OPEN).fetchone() is None)
    return time.perf_counter() - begin


async def _chain(path: Path) -> list[float]:
    await hop.defer_async(moments=[], path=str(path))
    return _read_moments(path)


def _read_moments(path: Path) -> list[float]:
    wait_until(path.exists)
    moments = [float(moment) for moment in path.read_text().split()]
    path.unlink()
    return moments


if __name__ == "__main__":
    asyncio.run(work() if sys.argv[1] == "work" else drive(read_order()))
