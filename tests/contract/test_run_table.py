"""The contract of RunTable."""

from __future__ import annotations

import msgspec
import pytest

from tests.builders import NOON, a_new_run, a_run, a_task
from tests.contract.given import claimed, given, task_of
from tidemill.domain.errors import IllegalTransition
from tidemill.domain.run import Run, RunState
from tidemill.domain.task_run import ALONE, Reason, TaskState
from tidemill.ports.store import FORMAT_MAX, Store


async def saved_run(store: Store, run: Run) -> None:
    async with store.transaction() as tx:
        await tx.runs.save([run])


async def test_a_run_comes_back_as_it_was_added(store: Store) -> None:
    run = a_run(
        labels={"team": "mill", "sort": "ünïcode"},
        told=3,
        stop=Reason.TIMEOUT,
        parent_run=a_run().id,
        parent_position=4,
        due_at=NOON + 1,
        started_at=NOON,
    )
    await given(store, run)

    async with store.transaction() as tx:
        assert await tx.runs.lock([run.id], wait=True) == [run]
    assert await store.reader.run("default", run.id) == run


async def test_a_run_comes_back_as_it_was_saved(store: Store) -> None:
    run = a_run(state=RunState.PENDING, told=0)
    await given(store, run)
    changed = msgspec.structs.replace(
        run,
        state=RunState.FAILED,
        open=0,
        failed=2,
        ended=7,
        next_position=9,
        told=None,
        stop=Reason.TASK_FAILED,
        generation=2,
        due_at=NOON + 5,
        started_at=NOON + 1,
        ended_at=NOON + 2,
        reason=Reason.TASK_FAILED,
    )

    await saved_run(store, changed)

    assert await store.reader.run("default", run.id) == changed


async def test_runs_are_locked_once_each_in_order_of_id(store: Store) -> None:
    first, second, third = a_run(), a_run(), a_run()
    await given(store, first, second, third)

    async with store.transaction() as tx:
        locked = await tx.runs.lock([third.id, first.id, third.id, a_run().id], wait=False)

    assert locked == [first, third]


async def test_peeking_returns_the_same_as_locking(store: Store) -> None:
    first, second = a_run(), a_run()
    await given(store, second, first)

    async with store.transaction() as tx:
        assert await tx.runs.peek([second.id, first.id]) == [first, second]


async def test_a_run_of_a_later_format_is_left_alone(store: Store) -> None:
    later = a_run(format=FORMAT_MAX + 1)
    await given(store, later)

    async with store.transaction() as tx:
        assert await tx.runs.lock([later.id], wait=True) == []
    assert await store.reader.run("default", later.id) == later


async def test_a_run_in_quarantine_is_out_of_reach_and_so_are_its_tasks(store: Store) -> None:
    task = a_task()
    await given(store, task)

    async with store.transaction() as tx:
        await tx.runs.quarantine(task.run_id, "its row cannot be read\0")

    async with store.transaction() as tx:
        assert await tx.runs.lock([task.run_id], wait=True) == []
        assert await tx.runs.peek([task.run_id]) == []
    assert await claimed(store) == []
    assert (await store.reader.run("default", task.run_id)).quarantine == "its row cannot be read"


async def test_a_released_run_is_as_it_was(store: Store) -> None:
    task = a_task()
    alone = a_task(run_id=task.run_id, position=1, hold=ALONE)
    waiting = a_task(run_id=task.run_id, position=2, state=TaskState.PENDING)
    await given(store, task, alone, waiting)
    async with store.transaction() as tx:
        await tx.runs.quarantine(task.run_id, "first")
        await tx.runs.quarantine(task.run_id, "second")

    async with store.transaction() as tx:
        assert await tx.runs.release(task.run_id)

    assert await store.reader.tasks("default", task.run_id, -1, 10) == [task, alone, waiting]
    async with store.transaction() as tx:
        assert not await tx.runs.release(task.run_id)


async def test_quarantine_touches_no_other_run(store: Store) -> None:
    task, other = a_task(), a_task()
    await given(store, task, other)

    async with store.transaction() as tx:
        await tx.runs.quarantine(task.run_id, "broken")

    assert await claimed(store) == [other]
    assert await task_of(store, other.key) == other


async def test_an_ended_run_stays_ended(store: Store) -> None:
    run = a_run(state=RunState.SUCCEEDED)
    await given(store, run)

    with pytest.raises(IllegalTransition):
        await saved_run(
            store, msgspec.structs.replace(run, state=RunState.RUNNING, ended_at=None, open=1)
        )

    assert await store.reader.run("default", run.id) == run


async def test_an_ended_run_is_reopened_as_a_new_generation(store: Store) -> None:
    run = a_run(state=RunState.FAILED)
    await given(store, run)
    reopened = msgspec.structs.replace(
        run, state=RunState.RUNNING, ended_at=None, open=1, generation=2
    )

    await saved_run(store, reopened)

    assert await store.reader.run("default", run.id) == reopened


async def test_the_input_of_a_run_is_kept_byte_by_byte(store: Store) -> None:
    new = a_new_run(input=b'{"\\u0000": "\xc3\xa4"}')

    async with store.transaction() as tx:
        await tx.runs.add([new])

    assert await store.payloads.inputs([new.run.id]) == {new.run.id: new.input}
