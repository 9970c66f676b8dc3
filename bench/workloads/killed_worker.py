"""`kills`: from SIGKILL of a worker until its task runs in another one; roles apart, over TCP.

Nobody watches over these workers: the scheduler learns of the end by the end of the stream, and
waits as long as the product waits for a process that might come back.
"""

from __future__ import annotations

import time

from bench.apart import Apart, percentile, running_apart
from bench.results import Sample
from bench.stage import Stage
from bench.workloads.recover import TASK, killed_workflow, read_marks

KILLS = 50
KILLS_QUICK = 5


async def measure_kills(stage: Stage) -> list[Sample]:
    """Seconds from the kill to the next start of the task, over many kills."""
    kills = KILLS_QUICK if stage.quick else KILLS
    stage.settings |= {"kills": kills, "workers": 2, "schedulers": 1}
    seconds = list[float]()
    async with running_apart(stage, 1, 2, ["--import", str(TASK)]) as apart:
        for number in range(kills):
            seconds.append(await _recover(apart, number))
            stage.say(f"{seconds[-1]:.2f} s")
    return [
        Sample("seconds_p50", "s", [percentile(seconds, 50)]),
        Sample("seconds_p99", "s", [percentile(seconds, 99)]),
        Sample("seconds", "s", seconds),
    ]


async def _recover(apart: Apart, number: int) -> float:
    marks = apart.folder / f"marks-{number}"
    await apart.begin(killed_workflow(marks), 1)
    [(_, pid)] = await read_marks(marks, 1)
    worker = next(one for one in apart.roles.workers if one.pid == int(pid))
    killed_at = time.time()
    worker.kill()
    [_, (again_at, _)] = await read_marks(marks, 2)
    await apart.all_ended()
    worker.start()
    await apart.until_connected(worker)
    return again_at - killed_at
