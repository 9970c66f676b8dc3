"""`chain3`: workflows of three steps; each gets a small result and hands it on.

A step is a Python coroutine in the worker that returns what it was given: the first a constant of
the workflow, the others the result of the step before, by reference. Otherwise as `jobs` end to
end. `ratio_to_jobs` compares the tasks per second with those of as many single jobs in turns, each
on a system of its own: neither works while the database clears away what the other one left.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.results import Sample
from bench.shapes import PASSING_TASK, jobs, passing_chain
from bench.stage import Stage
from bench.throughput import Throughput, cpu_of, throughput_of
from tidemill.engine.runs import StartRequest

RUNS = 14_000
RUNS_QUICK = 700
LENGTH = 3
WARM_UP = 700


async def measure_chain3(stage: Stage) -> list[Sample]:
    """Tasks per second, and as a share of what single jobs do."""
    runs = RUNS_QUICK if stage.quick else RUNS
    chains = [StartRequest(workflow=passing_chain(LENGTH))] * runs
    measured, ratios = list[Throughput](), list[float]()
    for _ in range(stage.repeats):
        of_jobs = await _measure(stage, jobs(runs * LENGTH))
        measured.append(await _measure(stage, chains))
        ratios.append(measured[-1].tasks_per_second / of_jobs.tasks_per_second)
        stage.say(f"{measured[-1]}; {ratios[-1]:.2f} of single jobs")
    stage.settings |= {
        "runs": runs,
        "tasks": runs * LENGTH,
        "cpu_micros_per_task": cpu_of(measured),
    }
    return [
        Sample("tasks_per_second", "1/s", [one.tasks_per_second for one in measured]),
        Sample("ratio_to_jobs", "ratio", ratios),
    ]


async def _measure(stage: Stage, requests: Sequence[StartRequest]) -> Throughput:
    async with stage.mill(imports=[str(PASSING_TASK)]) as mill:
        await throughput_of(mill, requests[:WARM_UP])
        return await throughput_of(mill, requests)
