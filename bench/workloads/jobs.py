"""`jobs`: single tasks that do nothing, from the wish to the end."""

from __future__ import annotations

import time

from bench.results import Sample
from bench.shapes import job
from bench.stage import Stage

JOBS = 10_000
JOBS_QUICK = 2_000


async def measure_jobs(stage: Stage) -> list[Sample]:
    """Jobs per second, all wished for at once."""
    count = JOBS_QUICK if stage.quick else JOBS
    stage.settings |= {"jobs": count}
    rates = list[float]()
    async with stage.mill() as mill:
        await mill.begin(job(), 100)
        await mill.all_ended()
        for _ in range(stage.repeats):
            begin = time.perf_counter()
            await mill.begin(job(), count)
            await mill.all_ended()
            rates.append(count / (time.perf_counter() - begin))
            stage.say(f"{rates[-1]:,.0f} tasks per second")
    return [Sample("tasks_per_second", "1/s", rates)]
