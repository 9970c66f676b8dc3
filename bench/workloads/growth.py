"""`chain` and `fan`: does a task cost more in a large run than in a small one?

Small and large runs take turns on one system, so that whatever else the machine does meets both,
and the growth is the ratio within each pair. A small run is too short to be timed alone: several
make one figure.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.mill import Mill
from bench.results import Sample
from bench.shapes import chain, fan
from bench.stage import Stage
from tidemill.domain.workflow import Workflow

SMALL = 100
SMALL_RUNS = 10
LARGE = 10_000
LARGE_QUICK = 2_000


async def measure_chain(stage: Stage) -> list[Sample]:
    """Milliseconds per task of a chain of 100 and of one of 10,000."""
    return await _growth(stage, chain)


async def measure_fan(stage: Stage) -> list[Sample]:
    """Milliseconds per task of a fan-out over 100 and of one over 10,000."""
    return await _growth(stage, fan)


async def _growth(stage: Stage, shape: Callable[[int], Workflow]) -> list[Sample]:
    large_size = LARGE_QUICK if stage.quick else LARGE
    stage.settings |= {"small": SMALL, "small_runs": SMALL_RUNS, "large": large_size}
    small, large = list[float](), list[float]()
    async with stage.mill() as mill:
        await _per_task(mill, shape(SMALL), 2)
        for _ in range(stage.repeats):
            small.append(await _per_task(mill, shape(SMALL), SMALL_RUNS))
            stage.say(f"{small[-1]:.3f} ms per task of {SMALL}")
            large.append(await _per_task(mill, shape(large_size), 1))
            stage.say(f"{large[-1]:.3f} ms per task of {large_size:,}")
    growth = [after / before for before, after in zip(small, large, strict=True)]
    return [
        Sample("ms_per_task_small", "ms", small),
        Sample("ms_per_task_large", "ms", large),
        Sample("growth", "ratio", growth),
    ]


async def _per_task(mill: Mill, workflow: Workflow, runs: int) -> float:
    seconds = [await mill.seconds_of(workflow) for _ in range(runs)]
    return sum(seconds) * 1_000 / runs / len(workflow.tasks)
