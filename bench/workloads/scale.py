"""`scale`: single tasks per second with three schedulers, as a share of what one scheduler does.

Four workers in both cases, on one PostgreSQL and the same cores, measured in turns. Beside them one
scheduler with one worker: the fewest processes, hence the least that has to share the cores.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.apart import running_apart
from bench.results import Sample
from bench.shapes import job
from bench.stage import Stage

JOBS = 10_000
JOBS_QUICK = 3_000
REPEATS = 5
WORKERS = 4
MANY = 3


async def measure_scale(stage: Stage) -> list[Sample]:
    """The rates, and their ratios."""
    count = JOBS_QUICK if stage.quick else JOBS
    repeats = max(stage.repeats, REPEATS)
    stage.settings |= {"jobs": count, "workers": WORKERS, "schedulers": MANY}
    least, one, many = list[float](), list[float](), list[float]()
    for _ in range(repeats):
        least.append(await _rate(stage, count, schedulers=1, workers=1))
        one.append(await _rate(stage, count, schedulers=1, workers=WORKERS))
        many.append(await _rate(stage, count, schedulers=MANY, workers=WORKERS))
        stage.say(f"{least[-1]:,.0f}, {one[-1]:,.0f} and {many[-1]:,.0f} tasks per second")
    return [
        Sample("least_tasks_per_second", "1/s", least),
        Sample("one_tasks_per_second", "1/s", one),
        Sample("many_tasks_per_second", "1/s", many),
        Sample("ratio", "", _ratios(many, one)),
        Sample("ratio_to_least", "", _ratios(many, least)),
    ]


def _ratios(rates: Sequence[float], others: Sequence[float]) -> list[float]:
    return [rate / other for rate, other in zip(rates, others, strict=True)]


async def _rate(stage: Stage, count: int, *, schedulers: int, workers: int) -> float:
    async with running_apart(stage, schedulers, workers) as apart:
        await apart.begin(job(), 500)
        await apart.all_ended()
        begin = time.perf_counter()
        await apart.begin(job(), count)
        await apart.all_ended()
        return count / (time.perf_counter() - begin)
