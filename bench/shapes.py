"""The workflows that are measured: no task of them does anything worth mentioning."""

from __future__ import annotations

from pathlib import Path

from tidemill.domain.workflow import TASKS_MAX, Source, TaskSpec, Workflow
from tidemill.engine.runs import StartRequest
from tidemill.engine.shapes import JobWish, job_request

NOTHING = "noop"
PASSING_TASK = Path(__file__).with_name("passing_task.py")


def chain(length: int) -> Workflow:
    """One task after the other."""
    tasks = [_task("step-0")]
    tasks += [_task(f"step-{place}", f"step-{place - 1}") for place in range(1, length)]
    return Workflow(name=f"chain-{length}", tasks=tuple(tasks))


def passing_chain(length: int) -> Workflow:
    """A chain whose tasks hand a small result on, each what it got; workers import PASSING_TASK."""
    value: dict[str, object] = {"name": "bench", "numbers": [1, 2, 3]}
    sources = [Source(const=value), *(Source(result=f"step-{place}") for place in range(length))]
    tasks = [
        TaskSpec(
            id=f"step-{place}",
            executor="python",
            params={"function": f"{PASSING_TASK.stem}:pass_on"},
            inputs={"value": sources[place]},
        )
        for place in range(length)
    ]
    return Workflow(name=f"passing-{length}", tasks=tuple(tasks))


def sleeping_chain(length: int, seconds: float) -> Workflow:
    """A chain of tasks that take some time."""
    tasks = [
        TaskSpec(
            id=f"step-{place}",
            executor="sleep",
            params={"seconds": seconds},
            depends_on=(f"step-{place - 1}",) if place else (),
        )
        for place in range(length)
    ]
    return Workflow(name=f"sleeping-{length}", tasks=tuple(tasks))


def fan(width: int) -> Workflow:
    """One task, then many at once, then one that waits for them all; as wide as a run may be."""
    width = min(width, TASKS_MAX - 2)
    branches = [_task(f"branch-{place}", "first") for place in range(width)]
    last = _task("last", *(branch.id for branch in branches))
    return Workflow(name=f"fan-{width}", tasks=(_task("first"), *branches, last))


def job() -> Workflow:
    """A single task."""
    return Workflow(name="job", tasks=(_task("only"),))


def jobs(count: int) -> list[StartRequest]:
    """Jobs with a small payload, as the API makes them of what it is posted."""
    wish = JobWish(type=NOTHING, payload={"n": 1})
    return [job_request(wish, "default", {NOTHING})] * count


def _task(name: str, *parents: str) -> TaskSpec:
    return TaskSpec(id=name, executor=NOTHING, depends_on=parents)
