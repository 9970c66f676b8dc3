"""How fast a mill gets through many runs, and what that costs in processor time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.mill import Mill
from bench.shapes import jobs
from tidemill.engine.runs import StartRequest


@dataclass(frozen=True)
class Throughput:
    """Of a number of tasks, from the wish for all of them to the end of the last run."""

    tasks_per_second: float
    cpu_micros: dict[str, float]  # per task, by process; the database is not among them

    def __str__(self) -> str:
        cpu = ", ".join(f"{name} {micros:.0f}" for name, micros in self.cpu_micros.items())
        return f"{self.tasks_per_second:,.0f} tasks per second; µs of processor per task: {cpu}"


async def throughput_of(mill: Mill, requests: Sequence[StartRequest]) -> Throughput:
    """Submit all in one call, and wait until none is open."""
    tasks = sum(len(request.workflow.tasks) for request in requests)
    cpu, begin = mill.cpu_seconds(), time.perf_counter()
    await mill.submit(requests)
    await mill.all_ended(tasks)
    seconds = time.perf_counter() - begin
    used = {name: after - cpu[name] for name, after in mill.cpu_seconds().items()}
    return Throughput(tasks / seconds, {name: spent * 1e6 / tasks for name, spent in used.items()})


async def throughput_of_jobs(mill: Mill, count: int) -> Throughput:
    """The same for single jobs."""
    return await throughput_of(mill, jobs(count))


def cpu_of(measured: Sequence[Throughput]) -> dict[str, float]:
    """The medians, as settings have them."""
    names = measured[0].cpu_micros
    return {name: round(median(one.cpu_micros[name] for one in measured)) for name in names}
