"""`scale`: single tasks per second with more and more processes, on one PostgreSQL.

1, 2 and 4 workers of one scheduler, then 4 workers of 2 and of 3 schedulers; all on the same cores,
measured in turns. With cores to spare more is more; without, it should cost little. The ratio is
what 3 schedulers do of what one does, with the same workers.
"""

from __future__ import annotations

import time
from typing import TypeAlias

from bench.apart import running_apart
from bench.results import Sample
from bench.shapes import job
from bench.stage import Stage

JOBS = 10_000
JOBS_QUICK = 3_000
WARM = 500

Crew: TypeAlias = tuple[int, int]
"""Schedulers, and workers of all of them together."""

CREWS: tuple[Crew, ...] = ((1, 1), (1, 2), (1, 4), (2, 4), (3, 4))
ONE: Crew = (1, 4)
MANY: Crew = (3, 4)


async def measure_scale(stage: Stage) -> list[Sample]:
    """The rate of every crew, and the ratio of two."""
    count = JOBS_QUICK if stage.quick else JOBS
    stage.settings |= {"jobs": count}
    rates: dict[Crew, list[float]] = {crew: [] for crew in CREWS}
    for _ in range(stage.repeats):
        for crew in CREWS:
            rates[crew].append(await _rate(stage, count, crew))
            stage.say(f"{rates[crew][-1]:,.0f} tasks per second as {_name(crew)}")
    ratios = [many / one for many, one in zip(rates[MANY], rates[ONE], strict=True)]
    return [
        Sample("ratio", "ratio", ratios),
        *(Sample("tasks_per_second", "1/s", rates[crew], variant=_name(crew)) for crew in CREWS),
    ]


def _name(crew: Crew) -> str:
    schedulers, workers = crew
    return f"schedulers-{schedulers}-workers-{workers}"


async def _rate(stage: Stage, count: int, crew: Crew) -> float:
    async with running_apart(stage, *crew) as apart:
        await apart.begin(job(), WARM)
        await apart.all_ended()
        begin = time.perf_counter()
        await apart.begin(job(), count)
        await apart.all_ended()
        return count / (time.perf_counter() - begin)
