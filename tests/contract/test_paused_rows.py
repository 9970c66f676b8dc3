"""What stores must do for runs that are paused and resumed."""

from __future__ import annotations

import sqlite3

import msgspec
import pytest

from tests.builders import a_run, a_task
from tests.contract.given import LANE, claimed, given, saved, task_of
from tidemill.domain.run import PAUSED_FORMAT, PLAIN_FORMAT, Run, RunState
from tidemill.domain.task_run import ALONE, PAUSED, TaskRun, TaskState
from tidemill.ports.store import ReadyLane, Store
from tidemill.stores.migrator import load_migrations

OLD_RUN = """
INSERT INTO run (id, namespace, workflow, version_id, state, open, failed, ended, next_position,
    generation, labels, created_at, ended_at, format, input)
VALUES ('r', 'default', 'orders', 'v1', 'FAILED', 0, 1, 1, 1, 1, '{}', 5, 6, 1, x'7b7d')
"""


def held(task: TaskRun, hold: str | None = PAUSED) -> TaskRun:
    return msgspec.structs.replace(task, hold=hold)


async def unheld(store: Store, run: Run, *, start: int = 0, limit: int = 10) -> list[TaskRun]:
    async with store.transaction() as tx:
        return await tx.tasks.lock_ready(run.id, paused=False, start=start, limit=limit)


async def test_a_paused_run_comes_back_as_it_was_saved(store: Store) -> None:
    run = a_run()
    await given(store, run)
    paused = msgspec.structs.replace(run, state=RunState.PAUSED, format=PAUSED_FORMAT, swept=7)

    async with store.transaction() as tx:
        await tx.runs.save([paused])

    async with store.transaction() as tx:
        assert await tx.runs.lock([run.id], wait=True) == [paused]
    assert await store.reader.run("default", run.id) == paused


async def test_a_paused_run_goes_on_or_ends(store: Store) -> None:
    first, second = a_run(state=RunState.PAUSED), a_run(state=RunState.PAUSED)
    await given(store, first, second)
    going = msgspec.structs.replace(first, state=RunState.RUNNING, format=PLAIN_FORMAT)
    ended = msgspec.structs.replace(second, state=RunState.FAILED, open=0, ended_at=1)

    async with store.transaction() as tx:
        await tx.runs.save([going, ended])

    assert await store.reader.run("default", first.id) == going
    assert await store.reader.run("default", second.id) == ended


async def test_what_is_held_for_a_pause_is_in_no_lane(store: Store) -> None:
    task = a_task()
    await given(store, task)

    await saved(store, held(task))

    assert await claimed(store) == await claimed(store, alone=True) == []
    assert await store.watch.ready_lanes() == []


async def test_what_is_admitted_again_goes_to_the_end_of_its_lane(store: Store) -> None:
    first, second = a_task(), a_task()
    await given(store, first, second)
    async with store.transaction() as tx:
        floor = (await tx.tasks.claim(LANE, floor=0, limit=2, alone=False)).floor
    await saved(store, held(first))

    await saved(store, first)

    assert await claimed(store) == [second, first]
    assert await claimed(store, floor=floor) == [first]


async def test_a_suspect_that_is_admitted_again_waits_among_suspects(store: Store) -> None:
    task = a_task(hold=PAUSED, losses=3)
    await given(store, task)

    await saved(store, held(task, ALONE))

    assert await claimed(store, alone=True) == [held(task, ALONE)]
    assert await store.watch.ready_lanes() == [ReadyLane(LANE, alone=True)]


async def test_saving_what_is_ready_as_it_was_keeps_its_place(store: Store) -> None:
    first, second = a_task(), a_task()
    await given(store, first, second)

    await saved(store, first)

    assert await claimed(store) == [first, second]


async def test_ready_tasks_are_locked_by_hold_in_order_of_position(store: Store) -> None:
    run = a_run(state=RunState.PAUSED)
    holds = (None, PAUSED, ALONE, None, PAUSED)
    tasks = [a_task(run_id=run.id, position=place, hold=hold) for place, hold in enumerate(holds)]
    pending = a_task(run_id=run.id, position=5, state=TaskState.PENDING)
    await given(store, run, *tasks, pending, a_task())

    async with store.transaction() as tx:
        paused = await tx.tasks.lock_ready(run.id, paused=True, start=0, limit=10)

    assert paused == [tasks[1], tasks[4]]
    assert await unheld(store, run) == [tasks[0], tasks[2], tasks[3]]
    assert await unheld(store, run, limit=2) == [tasks[0], tasks[2]]
    assert await unheld(store, run, start=1) == [tasks[2], tasks[3]]


async def test_runs_with_tasks_to_hold_or_to_admit_are_unsettled(store: Store) -> None:
    paused, resumed = a_run(state=RunState.PAUSED, swept=0), a_run(swept=3)
    await given(store, paused, resumed, a_run(state=RunState.PAUSED), a_run())

    assert sorted(await store.watch.unsettled_runs(10)) == [paused.id, resumed.id]


async def test_a_pause_outlasts_a_quarantine(store: Store) -> None:
    task = a_task(hold=PAUSED)
    await given(store, task)
    async with store.transaction() as tx:
        await tx.runs.quarantine(task.run_id, "broken")
    assert await claimed(store) == []

    async with store.transaction() as tx:
        await tx.runs.release(task.run_id)

    assert await task_of(store, task.key) == task


def test_runs_stored_before_there_were_pauses_are_kept_and_guarded() -> None:
    raw = sqlite3.connect(":memory:")
    migrations = load_migrations("tidemill.stores.sqlite")
    for migration in migrations[:3]:
        raw.executescript(migration.text)
    raw.execute(OLD_RUN)
    before = raw.execute("SELECT * FROM run").fetchone()

    raw.executescript(migrations[3].text)

    assert raw.execute("SELECT * FROM run").fetchone() == (*before, None)
    raw.execute("UPDATE run SET state = 'PAUSED', ended_at = NULL, generation = 2")
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute("UPDATE run SET generation = 1")
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute("UPDATE run SET state = 'DREAMING'")
