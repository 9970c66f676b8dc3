"""`recover`: from SIGKILL of the worker process until its task runs again, in a new one.

Each repeat has a system of its own, and lets the worker live for a while first: one that dies young
is replaced later on purpose.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from pathlib import Path

from bench.mill import LOOK_SECONDS
from bench.results import Sample
from bench.stage import Stage
from tidemill.domain.workflow import TaskSpec, Workflow

TASK = Path(__file__).with_name("killed_task.py")
WAIT_SECONDS_MAX = 60.0


async def measure_recovery(stage: Stage) -> list[Sample]:
    """Seconds from the kill to the next start of the task."""
    seconds = list[float]()
    for _ in range(stage.repeats):
        with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
            seconds.append(await _recover(stage, Path(folder) / "marks"))
        stage.say(f"{seconds[-1]:.2f} s")
    return [Sample("seconds_to_running_again", "s", seconds)]


async def _recover(stage: Stage, marks: Path) -> float:
    async with stage.mill(imports=[str(TASK)]) as mill:
        await mill.begin(killed_workflow(marks), 1)
        [(_, pid)] = await read_marks(marks, 1)
        assert int(pid) in mill.worker_pids
        killed_at = time.time()
        os.kill(int(pid), signal.SIGKILL)
        [_, (again_at, _)] = await read_marks(marks, 2)
        await mill.all_ended()
    return again_at - killed_at


def killed_workflow(marks: Path) -> Workflow:
    """A run of one task, whose first attempt waits for its end."""
    task = TaskSpec(
        id="killed",
        executor="python",
        params={"function": f"{TASK.stem}:wait_to_be_killed"},
        inputs={"marks": str(marks)},
    )
    return Workflow(name="killed", tasks=(task,))


async def read_marks(path: Path, count: int) -> list[tuple[float, float]]:
    """When the attempts began, and in which processes."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while len(lines := _lines(path)) < count:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
    return [(float(moment), float(pid)) for moment, pid in map(str.split, lines)]


def _lines(path: Path) -> list[str]:
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()
