"""Puts rows into a store, and looks at them again, for the tests of the contract."""

from __future__ import annotations

from tests.builders import a_run
from tidemill.domain.identifiers import Lane, Moment, TaskKey
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun
from tidemill.ports.store import NewRun, Session, Store

LANE = Lane("default", "default", 0)


async def given(store: Store, *rows: Run | TaskRun | Session) -> None:
    """Commit rows; a task whose run is not among them gets one."""
    runs = {row.id: row for row in rows if isinstance(row, Run)}
    tasks = [row for row in rows if isinstance(row, TaskRun)]
    for task in tasks:
        runs.setdefault(task.run_id, a_run(id=task.run_id, namespace=task.namespace))
    async with store.transaction() as tx:
        there = {run.id for run in await tx.runs.peek(list(runs))}
        new = [NewRun(run=run, input=b"{}") for run in runs.values() if run.id not in there]
        await tx.runs.add(new)
        await tx.tasks.add(tasks)
        for row in rows:
            if isinstance(row, Session):
                await tx.sessions.open(row)


async def saved(store: Store, *tasks: TaskRun) -> None:
    """Commit changes of tasks."""
    async with store.transaction() as tx:
        await tx.tasks.save(tasks)


async def task_of(store: Store, key: TaskKey) -> TaskRun:
    """One task as it is stored."""
    (task,) = await store.reader.tasks("default", key.run_id, key.position - 1, 1)
    return task


async def now_of(store: Store) -> Moment:
    """The clock of the database."""
    async with store.transaction() as tx:
        return await tx.now()


async def claimed(
    store: Store, lane: Lane = LANE, *, floor: int = 0, limit: int = 100, alone: bool = False
) -> list[TaskRun]:
    """What a claim would get, and leaves where it is."""
    async with store.transaction() as tx:
        return (await tx.tasks.claim(lane, floor=floor, limit=limit, alone=alone)).tasks
