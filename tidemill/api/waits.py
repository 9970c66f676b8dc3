"""Why tasks of a run do not run yet, for people who look at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidemill.api.looking import plan_of
from tidemill.api.services import Services
from tidemill.domain.plan import Plan
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.domain.task_run import ALONE, PAUSED, TaskRun, TaskState
from tidemill.engine.waiting import explain_waits
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources import TaskView, WaitReason

TASKS_LOOKED_AT_MAX = 2_000
REASONS_MAX = 100

_HOLDS = {
    ALONE: "it needs a worker that runs nothing else",
    PAUSED: "its run is paused",
}


async def waits_of(services: Services, run: Run) -> tuple[WaitReason, ...]:
    """What the tasks of a run wait for that could run as far as their parents are concerned."""
    if run.state in RUN_ENDED:
        return ()
    reader = services.store.reader
    tasks = await reader.tasks(run.namespace, run.id, -1, TASKS_LOOKED_AT_MAX)
    plan = await plan_of(services, run)
    reasons = await explain(services, run, tasks, plan)
    waiting = (task for task in tasks if task.state is not TaskState.PENDING)
    found = [reasons[task.position] for task in waiting if task.position in reasons]
    return tuple(found[:REASONS_MAX])


async def explain(
    services: Services, run: Run, tasks: Sequence[TaskRun], plan: Plan
) -> dict[int, WaitReason]:
    """Why those of the tasks wait that do, by position."""
    lacks = await explain_waits(services.store, run.namespace, tasks)
    return dict(_reasons(tasks, plan, lacks))


async def with_waits(
    services: Services, run: Run, tasks: Sequence[TaskRun], views: Sequence[TaskView]
) -> tuple[TaskView, ...]:
    """The same views, each with what its task waits for."""
    reasons = await explain(services, run, tasks, await plan_of(services, run))
    return tuple(
        msgspec.structs.replace(view, waiting_for=(reasons[view.position],))
        if view.position in reasons
        else view
        for view in views
    )


def _reasons(
    tasks: Sequence[TaskRun], plan: Plan, lacks: dict[str, str]
) -> Iterator[tuple[int, WaitReason]]:
    for task in tasks:
        told = _reason(task, lacks)
        if told is not None:
            code, message = told
            name = plan.nodes[task.node].id
            yield task.position, WaitReason(task=name, code=code, message=message)


def _reason(task: TaskRun, lacks: dict[str, str]) -> tuple[str, str] | None:
    if task.state is TaskState.READY and task.hold is not None:
        return "HELD", _HOLDS.get(task.hold, task.hold)
    if task.state is TaskState.READY:
        lack = lacks.get(task.route)
        return None if lack is None else ("WORKERS", lack)
    if task.state is TaskState.BACKOFF and task.due_at is not None:
        at = time_of(task.due_at).strftime("%H:%M:%S")
        return "RETRY", f"its next attempt begins at {at} UTC"
    if task.state is TaskState.PENDING and task.waiting:
        parents = "parent has" if task.waiting == 1 else "parents have"
        return "PARENTS", f"{task.waiting} {parents} not ended"
    return None


__all__ = ["explain", "waits_of", "with_waits"]
