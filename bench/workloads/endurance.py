"""`endurance`: is the last of a million tasks as cheap as the first?

Batches of single jobs, from the wish to the end, one after the other on one store that keeps them
all. The rate of the first tenth is held against that of the last.
"""

from __future__ import annotations

from bench.batches import Batches
from bench.results import Sample
from bench.serving import run_batch, serving, started_with
from bench.stage import Stage

JOBS = 1_000_000
JOBS_QUICK = 20_000
BATCH = 5_000
BATCH_QUICK = 1_000
WARM = 500


async def measure_endurance(stage: Stage) -> list[Sample]:
    """The rate of the last tenth in times of that of the first; measured once, it is long."""
    jobs = JOBS_QUICK if stage.quick else JOBS
    batch = BATCH_QUICK if stage.quick else BATCH
    tenth = jobs // batch // 10
    stage.settings |= {"jobs": jobs, "batch": batch}
    done = Batches()
    async with stage.fresh_store() as (address, settings), serving(address) as system:
        stage.settings |= settings | started_with(system)
        await run_batch(system, WARM)
        for number in range(1, jobs // batch + 1):
            done.note(batch, await run_batch(system, batch))
            stage.say(f"{number * batch:,} finished, {done.rates[-1]:,.0f} tasks per second")
    first, last = done.first(tenth), done.last(tenth)
    series = {"series": done.series(tenth)}
    return [
        Sample("ratio_last_to_first", "ratio", [last.rate / first.rate]),
        Sample("tasks_per_second", "1/s", [done.rate], settings=series),
        Sample("tasks_per_second", "1/s", [first.rate], variant="first"),
        Sample("tasks_per_second", "1/s", [last.rate], variant="last"),
    ]
