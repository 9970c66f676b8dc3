"""`endurance`: is the last of a million tasks as cheap as the first?

Batches of single jobs, from the wish to the end, one after the other on one store that keeps them
all. The last tenth takes turns with the first tenth of a fresh store beside it: a shared machine is
now faster, now slower, and minutes apart would be two machines.
"""

from __future__ import annotations

from bench.batches import Batches
from bench.results import Sample
from bench.serving import note_batch, run_batch, serving, started_with
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
    done, fresh = Batches("on one store"), Batches("on a fresh one")
    async with stage.fresh_store() as (address, settings), serving(address) as system:
        stage.settings |= settings | started_with(system)
        await run_batch(system, WARM)
        for _ in range(9 * tenth):
            await note_batch(stage, done, system, batch)
        async with stage.fresh_store() as (beside, _), serving(beside) as other:
            await run_batch(other, WARM)
            for _ in range(tenth):
                await note_batch(stage, fresh, other, batch)
                await note_batch(stage, done, system, batch)
    last = done.last(tenth)
    series = {"series": done.series(tenth)}
    return [
        Sample("ratio_last_to_first", "ratio", [last.rate / fresh.rate]),
        Sample("tasks_per_second", "1/s", [done.rate], settings=series),
        Sample("tasks_per_second", "1/s", [fresh.rate], variant="first"),
        Sample("tasks_per_second", "1/s", [last.rate], variant="last"),
    ]
