"""`snapshot`: does it slow down while a foreign transaction holds its snapshot for five minutes?

Batches of single jobs, from the wish to the end, one after the other: for a minute without, then
with the snapshot. The rate of the last minute is held against that of the minute before it began.
"""

from __future__ import annotations

import time

from bench.batches import Batches
from bench.foreign import foreign_snapshot
from bench.results import Sample
from bench.serving import run_batch, serving, started_with
from bench.stage import Stage
from tidemill.runtime.embedded import Embedded

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
    async with stage.fresh_store() as (address, settings), serving(address) as system:
        stage.settings |= settings | started_with(system)
        for _ in range(WARM_BATCHES):
            await run_batch(system, batch)
        before = await _work(stage, system, batch, compared)
        async with foreign_snapshot(address):
            held = await _work(stage, system, batch, hold)
    return _samples(before, held, compared)


async def _work(stage: Stage, system: Embedded, batch: int, seconds: float) -> Batches:
    done = Batches()
    begin = time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        done.note(batch, await run_batch(system, batch))
        stage.say(f"{done.rates[-1]:,.0f} tasks per second after {passed:.0f} of {seconds:.0f} s")
    return done


def _samples(before: Batches, held: Batches, compared: float) -> list[Sample]:
    first, last = before.rate, held.last_seconds(compared).rate
    rate = "tasks_per_second"
    return [
        Sample("slowdown_percent", "%", [(1 - last / first) * 100]),
        Sample(rate, "1/s", [first], variant="before", settings={"series": before.series()}),
        Sample(rate, "1/s", [last], variant="held", settings={"series": held.series()}),
    ]
