"""Why READY tasks wait, for whoever shows them to people."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.domain.waiting import WorkerStanding, explain_wait
from tidemill.ports.store import Store


async def explain_waits(store: Store, namespace: str, tasks: Iterable[TaskRun]) -> dict[str, str]:
    """What the READY tasks among these wait for, by route; a route with free slots is left out."""
    waiting = {task.route for task in tasks if task.state is TaskState.READY and task.hold is None}
    if not waiting:
        return {}
    workers = await read_standings(store, namespace)
    reasons = {route: explain_wait(route, workers) for route in sorted(waiting)}
    return {route: reason for route, reason in reasons.items() if reason is not None}


async def read_standings(store: Store, namespace: str) -> list[WorkerStanding]:
    """The workers of a namespace, with what they offer and how busy they are."""
    return [
        WorkerStanding(
            queues=session.queues,
            labels=session.labels,
            offers=session.offers,
            slots=session.slots,
            busy=busy,
        )
        for session, busy in await store.reader.workers(namespace)
    ]
