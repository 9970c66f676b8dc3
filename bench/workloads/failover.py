"""`failover`: the pause in progress after SIGKILL of the scheduler that has all the workers.

Runs of one task begin all the time. A second scheduler is up; the workers find it, and take along
what they run. The pause is the longest time between two endings of runs from the kill on.
"""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from bench.apart import Apart, percentile, running_apart
from bench.results import Sample
from bench.shapes import job
from bench.stage import Stage
from tidemill.domain.run import RUN_ENDED
from tidemill.ports.queries import RunQuery

KILLS = 20
KILLS_QUICK = 3
WATCH_SECONDS = 5.0
EVERY_SECONDS = 0.05


async def measure_failover(stage: Stage) -> list[Sample]:
    """Seconds without progress, over many kills."""
    kills = KILLS_QUICK if stage.quick else KILLS
    stage.settings |= {"kills": kills, "workers": 2, "schedulers": 2}
    seconds = list[float]()
    async with running_apart(stage, 2, 2) as apart:
        submitting = asyncio.create_task(_submit(apart))
        for _ in range(kills):
            seconds.append(await _fail_over(apart))
            stage.say(f"{seconds[-1]:.2f} s")
        submitting.cancel()
        await asyncio.wait([submitting])
        await apart.all_ended()
    return [
        Sample("pause_p50", "s", [percentile(seconds, 50)]),
        Sample("pause_p99", "s", [percentile(seconds, 99)]),
        Sample("pause", "s", seconds),
    ]


async def _submit(apart: Apart) -> None:
    while True:
        await apart.begin(job(), 2)
        await asyncio.sleep(EVERY_SECONDS)


async def _fail_over(apart: Apart) -> float:
    await _gather_workers(apart)
    names = {one.scheduler for one in await apart.store.reader.sessions("default")}
    victim = next(one for one in apart.roles.schedulers if one.name in names)
    killed_at = time.time()
    victim.kill()
    await asyncio.sleep(WATCH_SECONDS)
    pause = await _longest_pause(apart, killed_at)
    if victim.name in {one.scheduler for one in await apart.store.reader.sessions("default")}:
        raise RuntimeError(f"workers have not left {victim.name}")
    victim.start()
    await apart.until_listening(victim)
    return pause


async def _gather_workers(apart: Apart) -> None:
    """Have all workers with one scheduler: the other one goes down for as long as that takes."""
    sessions = await apart.store.reader.sessions("default")
    names = sorted({one.scheduler for one in sessions})
    if len(names) > 1:
        other = next(one for one in apart.roles.schedulers if one.name == names[1])
        other.terminate()
        other.wait()
        for _ in range(round(WATCH_SECONDS / EVERY_SECONDS)):
            if {one.scheduler for one in await apart.store.reader.sessions("default")} == {
                names[0]
            }:
                break
            await asyncio.sleep(EVERY_SECONDS)
        other.start()
        await apart.until_listening(other)


async def _longest_pause(apart: Apart, since: float) -> float:
    query = RunQuery(namespace="default", states=tuple(sorted(RUN_ENDED)), limit=1_000)
    runs = await apart.store.reader.runs(query)
    moments = sorted((run.ended_at or 0) / 1e6 for run in runs)
    moments = [since, *(moment for moment in moments if moment > since), time.time()]
    return max(after - before for before, after in pairwise(moments))
