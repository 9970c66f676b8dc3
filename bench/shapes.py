"""The workflows that are measured: no task of them does anything."""

from __future__ import annotations

from tidemill.domain.workflow import TaskSpec, Workflow

NOTHING = "noop"


def chain(length: int) -> Workflow:
    """One task after the other."""
    tasks = [_task("step-0")]
    tasks += [_task(f"step-{place}", f"step-{place - 1}") for place in range(1, length)]
    return Workflow(name=f"chain-{length}", tasks=tuple(tasks))


def fan(width: int) -> Workflow:
    """One task, then many at once, then one that waits for them all."""
    branches = [_task(f"branch-{place}", "first") for place in range(width)]
    last = _task("last", *(branch.id for branch in branches))
    return Workflow(name=f"fan-{width}", tasks=(_task("first"), *branches, last))


def job() -> Workflow:
    """A single task."""
    return Workflow(name="job", tasks=(_task("only"),))


def _task(name: str, *parents: str) -> TaskSpec:
    return TaskSpec(id=name, executor=NOTHING, depends_on=parents)
