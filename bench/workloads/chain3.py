"""`chain3`: workflows of three steps; each gets a small result and hands it on.

A step is a Python coroutine in the worker that returns what it was given: the first a constant of
the workflow, the others the result of the step before, by reference. Otherwise as `jobs` end to
end. `ratio_to_jobs` compares the tasks per second with those of as many single jobs on the same
system, in turns.
"""

from __future__ import annotations

from bench.results import Sample
from bench.shapes import PASSING_TASK, passing_chain
from bench.stage import Stage
from bench.throughput import Throughput, cpu_of, throughput_of, throughput_of_jobs
from tidemill.engine.runs import StartRequest

RUNS = 7_000
RUNS_QUICK = 700
LENGTH = 3
WARM_UP = 700


async def measure_chain3(stage: Stage) -> list[Sample]:
    """Tasks per second, and as a share of what single jobs do."""
    runs = RUNS_QUICK if stage.quick else RUNS
    request = StartRequest(workflow=passing_chain(LENGTH))
    measured, ratios = list[Throughput](), list[float]()
    for _ in range(stage.repeats):
        async with stage.mill(imports=[str(PASSING_TASK)]) as mill:
            await throughput_of(mill, [request] * WARM_UP)
            of_jobs = await throughput_of_jobs(mill, runs * LENGTH)
            measured.append(await throughput_of(mill, [request] * runs))
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
