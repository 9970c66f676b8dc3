"""`hop`: how long a chain of 50 takes from one task to the next on a system that does nothing else.

A hop goes from the end of a task to the end of the next one, by the clock of the database as the
rows of the tasks have it: commit, grant, the way to the worker, the task that does nothing, the
way back. Percentiles are over all hops of a repeat. `hop-40x10ms` is the overhead per step of 40
tasks in a row that sleep for 10 ms: the run from its creation to its end, less the sleep, per step;
the operating system's lateness in waking a sleeper counts as overhead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bench.apart import percentile
from bench.mill import Mill
from bench.results import Sample
from bench.shapes import chain, sleeping_chain
from bench.stage import Stage
from tidemill.domain.identifiers import Moment

LENGTH = 50
RUNS = 20
RUNS_QUICK = 5
STEPS = 40
STEP_SECONDS = 0.01
SLEEPING_RUNS = 10
SLEEPING_RUNS_QUICK = 3
VARIANT = "40x10ms"


async def measure_hop(stage: Stage) -> list[Sample]:
    """Percentiles of the hops, and the overhead of a step."""
    runs = RUNS_QUICK if stage.quick else RUNS
    sleeping_runs = SLEEPING_RUNS_QUICK if stage.quick else SLEEPING_RUNS
    p50, p99, overhead = list[float](), list[float](), list[float]()
    async with stage.mill() as mill:
        await mill.run_of(chain(LENGTH))
        for _ in range(stage.repeats):
            hops = [one for _ in range(runs) for one in hops_of(await _ends(mill))]
            p50.append(percentile(hops, 50))
            p99.append(percentile(hops, 99))
            steps = [await _overhead(mill) for _ in range(sleeping_runs)]
            overhead.append(percentile(steps, 50))
            text = f"hop p50 {p50[-1]:.2f} ms, p99 {p99[-1]:.2f} ms"
            stage.say(f"{text}; overhead of a step {overhead[-1]:.2f} ms")
    settings = {"length": LENGTH, "runs": runs}
    of_steps = {"steps": STEPS, "step_seconds": STEP_SECONDS, "runs": sleeping_runs}
    return [
        Sample("hop_p50_ms", "ms", p50, settings=settings),
        Sample("hop_p99_ms", "ms", p99, settings=settings),
        Sample("overhead_p50_ms", "ms", overhead, VARIANT, settings=of_steps),
    ]


def hops_of(ends: Sequence[Moment]) -> list[float]:
    """Milliseconds from each end to the next one."""
    return [(after - before) / 1_000 for before, after in pairwise(ends)]


async def _ends(mill: Mill) -> list[Moment]:
    _, tasks = await mill.run_of(chain(LENGTH))
    return [task.ended_at for task in tasks if task.ended_at is not None]


async def _overhead(mill: Mill) -> float:
    """Milliseconds per step that are not sleep."""
    run, _ = await mill.run_of(sleeping_chain(STEPS, STEP_SECONDS))
    assert run.ended_at is not None
    total = (run.ended_at - run.created_at) / 1_000
    return (total - STEPS * STEP_SECONDS * 1_000) / STEPS
