"""The contract of TaskTable, but for claims."""

from __future__ import annotations

import msgspec
import pytest

from tests.builders import NOON, a_run_id, a_task
from tests.contract.given import claimed, given, saved, task_of
from tidemill.domain.errors import IllegalTransition, TidemillError
from tidemill.domain.identifiers import Lane, SessionId, TaskKey
from tidemill.domain.task_run import Reason, TaskError, TaskKind, TaskRun, TaskState
from tidemill.ports.store import FORMAT_MAX, Store

replace = msgspec.structs.replace


async def test_a_task_comes_back_as_it_was_added(store: Store) -> None:
    task = a_task(
        position=3,
        node=2,
        kind=TaskKind.OUTPUT,
        state=TaskState.FAILED,
        epoch=4,
        failures=2,
        losses=1,
        waiting=1,
        failed=1,
        skipped=1,
        told=5,
        route="gpu?zone=eu",
        priority=-7,
        ready_at=NOON,
        started_at=NOON + 1,
        ended_at=NOON + 2,
        ended_no=9,
        reason=Reason.EXHAUSTED,
        error=TaskError(type="ValueError", message="no \0 here", traceback="…"),
    )
    await given(store, task)

    async with store.transaction() as tx:
        assert await tx.tasks.lock([task.key]) == [task]


async def test_a_task_comes_back_as_it_was_saved(store: Store) -> None:
    task = a_task(state=TaskState.PENDING, waiting=2)
    await given(store, task)
    changed = replace(
        task,
        state=TaskState.RUNNING,
        epoch=1,
        failures=1,
        losses=2,
        waiting=0,
        failed=1,
        skipped=1,
        priority=5,
        route="other",
        due_at=NOON + 9,
        session_id=SessionId("s1"),
        ready_at=NOON,
        started_at=NOON + 1,
        error=TaskError(type="E", message="m"),
    )

    await saved(store, changed)

    assert await task_of(store, task.key) == changed


async def test_a_task_that_is_there_already_is_left_as_it_is(store: Store) -> None:
    task = a_task(state=TaskState.PENDING)
    await given(store, task)

    async with store.transaction() as tx:
        await tx.tasks.add([replace(task, waiting=7), a_task(run_id=task.run_id, position=1)])

    assert await task_of(store, task.key) == task
    assert len(await store.reader.tasks("default", task.run_id, -1, 10)) == 2


async def test_tasks_are_locked_once_each_in_order_of_key(store: Store) -> None:
    run_id = a_run_id()
    tasks = [a_task(run_id=run_id, position=position) for position in range(12)]
    await given(store, *tasks)

    async with store.transaction() as tx:
        keys = [tasks[place].key for place in (10, 2, 9, 2)]
        locked = await tx.tasks.lock([*keys, TaskKey(run_id, 99)])

    assert locked == [tasks[2], tasks[9], tasks[10]]


async def test_tasks_of_a_run_are_found_by_state_lowest_position_first(store: Store) -> None:
    run_id = a_run_id()
    states = [TaskState.BACKOFF, TaskState.READY, TaskState.PENDING, TaskState.READY]
    tasks = [a_task(run_id=run_id, position=p, state=s) for p, s in enumerate(states)]
    await given(store, *tasks, a_task())

    async with store.transaction() as tx:
        wanted = [TaskState.READY, TaskState.PENDING]
        assert await tx.tasks.lock_states(run_id, wanted, 10) == tasks[1:]
        assert await tx.tasks.lock_states(run_id, wanted, 2) == tasks[1:3]


async def test_untold_tasks_are_those_with_children_left_to_tell(store: Store) -> None:
    told = a_task(state=TaskState.SUCCEEDED)
    untold = a_task(run_id=told.run_id, position=1, state=TaskState.SUCCEEDED, told=0)
    await given(store, told, untold, a_task(state=TaskState.SUCCEEDED, told=1))

    async with store.transaction() as tx:
        assert await tx.tasks.lock_untold(told.run_id, 10) == [untold]


async def test_tasks_of_a_later_format_are_left_alone(store: Store) -> None:
    later = a_task(format=FORMAT_MAX + 1, state=TaskState.SUCCEEDED, told=0)
    await given(store, later)

    async with store.transaction() as tx:
        assert await tx.tasks.lock([later.key]) == []
        assert await tx.tasks.lock_states(later.run_id, list(TaskState), 10) == []
        assert await tx.tasks.lock_untold(later.run_id, 10) == []


async def test_a_stale_epoch_is_refused_by_the_database(store: Store) -> None:
    task = a_task(state=TaskState.RUNNING, epoch=3)
    await given(store, task)

    with pytest.raises(IllegalTransition):
        await saved(store, replace(task, epoch=2))

    assert await task_of(store, task.key) == task


REPLAYS = [
    (TaskState.FAILED, TaskState.READY),
    (TaskState.FAILED, TaskState.RUNNING),
    (TaskState.UPSTREAM_FAILED, TaskState.PENDING),
    (TaskState.SKIPPED, TaskState.PENDING),
    (TaskState.CANCELLED, TaskState.PENDING),
    (TaskState.CANCELLED, TaskState.READY),
]
RESURRECTIONS = [
    (TaskState.SUCCEEDED, TaskState.READY),
    (TaskState.SUCCEEDED, TaskState.RUNNING),
    (TaskState.SUCCEEDED, TaskState.FAILED),
    (TaskState.SUCCEEDED, TaskState.PENDING),
    (TaskState.FAILED, TaskState.SUCCEEDED),
    (TaskState.FAILED, TaskState.BACKOFF),
    (TaskState.CANCELLED, TaskState.SUCCEEDED),
    (TaskState.SKIPPED, TaskState.FAILED),
    (TaskState.UPSTREAM_FAILED, TaskState.CANCELLED),
]


def moved(task: TaskRun, state: TaskState) -> TaskRun:
    return a_task(run_id=task.run_id, state=state, epoch=task.epoch + 1)


@pytest.mark.parametrize(("before", "after"), RESURRECTIONS)
async def test_an_ended_task_stays_ended(store: Store, before: TaskState, after: TaskState) -> None:
    task = a_task(state=before)
    await given(store, task)

    with pytest.raises(IllegalTransition):
        await saved(store, moved(task, after))

    assert await task_of(store, task.key) == task


@pytest.mark.parametrize(("before", "after"), REPLAYS)
async def test_a_replay_may_leave_an_ending(
    store: Store, before: TaskState, after: TaskState
) -> None:
    task = a_task(state=before)
    await given(store, task)

    await saved(store, moved(task, after))

    assert (await task_of(store, task.key)).state is after


IMPOSSIBLE = {
    "granted without a session": {"state": TaskState.RUNNING, "session_id": None},
    "a session without a grant": {"session_id": "s1"},
    "ended without a moment": {"state": TaskState.FAILED, "ended_at": None},
    "a moment of ending before the end": {"ended_at": NOON},
    "held though not ready": {"state": TaskState.PENDING, "hold": "alone"},
    "telling children before the end": {"told": 0},
    "a negative counter": {"waiting": -1},
    "a negative epoch": {"epoch": -1},
    "a negative budget": {"failures": -1},
}


@pytest.mark.parametrize("fields", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
async def test_the_database_refuses_a_task_that_cannot_be(
    store: Store, fields: dict[str, object]
) -> None:
    with pytest.raises(TidemillError, match=r"(?i)check constraint"):
        await given(store, a_task(**fields))


async def test_a_batch_of_a_thousand_is_saved_in_one_go(store: Store) -> None:
    run_id = a_run_id()
    tasks = [a_task(run_id=run_id, position=place) for place in range(1_000)]
    await given(store, *tasks)

    await saved(store, *(replace(task, failures=task.position) for task in tasks))

    found = await store.reader.tasks("default", run_id, -1, 2_000)
    assert [task.failures for task in found] == list(range(1_000))
    async with store.transaction() as tx:
        assert await tx.tasks.lock([task.key for task in reversed(found)]) == found


async def test_rows_that_begin_alike_are_stored_like_any_others(store: Store) -> None:
    alike = [a_task(route="a", error=TaskError(type="E", message="m")) for _ in range(20)]
    others = [a_task(route=f"r{place}", priority=place) for place in range(3)]

    await given(store, *alike, *others)

    for task in (*alike, *others):
        assert await task_of(store, task.key) == task
    assert await claimed(store, Lane("default", "a", 0)) == alike
