"""`chain` and `fan`: does a task cost more in a large run than in a small one?

Runs of all sizes take turns on one system, so that whatever else the machine does meets all of
them, and the growth is a ratio within each turn. A small run is too short to be timed alone:
several make one figure. `fan` is one task, then N at once, then one that waits for them all;
`fan-100000` has two less in the middle, because a run has at most 100,000 tasks.
"""

from __future__ import annotations

from bench.mill import Mill
from bench.results import Sample
from bench.shapes import chain, fan
from bench.stage import Stage
from tidemill.domain.workflow import Workflow

SMALL = 100
LARGE = 10_000
LARGE_QUICK = 1_000
RUNS = {100: 10, 1_000: 2}  # of each size in one figure; one where nothing is said
FANS = (100, 1_000, 10_000, 100_000)
FANS_QUICK = (100, 1_000)
GROWTH_FROM = 1_000


async def measure_chain(stage: Stage) -> list[Sample]:
    """Milliseconds per task of a chain of 100 and of one of 10,000, and their ratio."""
    large = LARGE_QUICK if stage.quick else LARGE
    stage.settings |= {"small": SMALL, "large": large}
    figures = await _measure(stage, {size: chain(size) for size in (SMALL, large)})
    return [
        Sample("ms_per_task_small", "ms", figures[SMALL]),
        Sample("ms_per_task_large", "ms", figures[large]),
        Sample("growth", "ratio", _ratios(figures[SMALL], figures[large])),
    ]


async def measure_fan(stage: Stage) -> list[Sample]:
    """Milliseconds per task of each width; the growth is from 1,000 on, in a quick run from 100."""
    sizes = FANS_QUICK if stage.quick else FANS
    large = sizes[-1]
    small = GROWTH_FROM if large > GROWTH_FROM else sizes[0]
    figures = await _measure(stage, {size: fan(size) for size in sizes})
    growth = _ratios(figures[small], figures[large])
    return [
        Sample("growth", "ratio", growth, settings={"small": small, "large": large}),
        *(
            Sample("ms_per_task", "ms", figures[size], str(size), settings={"width": size})
            for size in sizes
        ),
    ]


async def _measure(stage: Stage, workflows: dict[int, Workflow]) -> dict[int, list[float]]:
    figures: dict[int, list[float]] = {size: [] for size in workflows}
    async with stage.mill() as mill:
        await _per_task(mill, workflows[min(workflows)], 2)
        for _ in range(stage.repeats):
            for size, workflow in workflows.items():
                figures[size].append(await _per_task(mill, workflow, RUNS.get(size, 1)))
                stage.say(f"{figures[size][-1]:.3f} ms per task of {size:,}")
    return figures


async def _per_task(mill: Mill, workflow: Workflow, runs: int) -> float:
    seconds = [await mill.seconds_of(workflow) for _ in range(runs)]
    return sum(seconds) * 1_000 / runs / len(workflow.tasks)


def _ratios(small: list[float], large: list[float]) -> list[float]:
    return [after / before for before, after in zip(small, large, strict=True)]
