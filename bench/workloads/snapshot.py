"""`snapshot`: does it slow down while a foreign transaction holds its snapshot for five minutes?

Batches of single jobs, from the wish to the end, one after the other under the snapshot. When it
has been held for so long, batches take turns with those of another store on which nobody holds one,
until a minute of each has passed: a shared machine is now faster, now slower.
"""

from __future__ import annotations

import time

from bench.batches import Batches
from bench.foreign import foreign_snapshot
from bench.results import Sample
from bench.serving import note_batch, run_batch, serving, started_with
from bench.stage import Stage

BATCH = 5_000
BATCH_QUICK = 1_000
WARM_BATCHES = 4
HOLD_SECONDS = 300.0
HOLD_SECONDS_QUICK = 20.0
COMPARED_SECONDS = 60.0
COMPARED_SECONDS_QUICK = 8.0


async def measure_snapshot(stage: Stage) -> list[Sample]:
    """Percent of the rate that is lost, and the rates."""
    batch = BATCH_QUICK if stage.quick else BATCH
    hold = HOLD_SECONDS_QUICK if stage.quick else HOLD_SECONDS
    compared = COMPARED_SECONDS_QUICK if stage.quick else COMPARED_SECONDS
    stage.settings |= {"batch": batch, "snapshot_seconds": hold, "compared_seconds": compared}
    held, free = Batches("under the snapshot"), Batches("without")
    async with (
        stage.fresh_store() as (address, settings),
        stage.fresh_store() as (beside, _),
        serving(address) as system,
        serving(beside) as other,
    ):
        stage.settings |= settings | started_with(system)
        for one in (system, other) * WARM_BATCHES:
            await run_batch(one, batch)
        async with foreign_snapshot(address):
            begin = time.perf_counter()
            while time.perf_counter() - begin < hold:
                await note_batch(stage, held, system, batch)
            while free.seconds < compared:
                await note_batch(stage, free, other, batch)
                await note_batch(stage, held, system, batch)
    return _samples(free, held)


def _samples(free: Batches, held: Batches) -> list[Sample]:
    before, last = free.rate, held.last(len(free)).rate
    rate = "tasks_per_second"
    return [
        Sample("slowdown_percent", "%", [(1 - last / before) * 100]),
        Sample(rate, "1/s", [before], variant="without", settings={"series": free.series()}),
        Sample(rate, "1/s", [last], variant="held", settings={"series": held.series()}),
    ]
