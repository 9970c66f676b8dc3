"""The contract of Watch."""

from __future__ import annotations

from tests.builders import a_run, a_run_id, a_session, a_session_id, a_task
from tests.contract.given import given, now_of
from tidemill.domain.identifiers import SECOND, Lane, SessionId
from tidemill.domain.run import RunState
from tidemill.domain.task_run import ALONE, Reason, TaskState
from tidemill.ports.store import FORMAT_MAX, DueTask, HeldTask, LostTask, ReadyLane, Store


async def quarantined(store: Store, run_id: str) -> None:
    async with store.transaction() as tx:
        await tx.runs.quarantine(run_id, "broken")  # type: ignore[arg-type]


async def test_due_tasks_are_told_longest_overdue_first(store: Store) -> None:
    now = await now_of(store)
    late = a_task(state=TaskState.BACKOFF, due_at=now - SECOND, epoch=2)
    later = a_task(state=TaskState.RUNNING, due_at=now - 2 * SECOND)
    await given(store, late, later, a_task(due_at=now + 60 * SECOND), a_task())

    due = await store.watch.due_tasks(10)

    assert due == [
        DueTask(later.token, TaskState.RUNNING),
        DueTask(late.token, TaskState.BACKOFF),
    ]
    assert await store.watch.due_tasks(1) == due[:1]


async def test_without_timers_nothing_is_due(store: Store) -> None:
    await given(store, a_task())

    assert await store.watch.due_tasks(10) == []


async def test_due_runs_are_open_and_not_stopping_yet(store: Store) -> None:
    past = await now_of(store) - SECOND
    due = a_run(due_at=past)
    pending = a_run(due_at=past - 1, state=RunState.PENDING)
    stopping = a_run(due_at=past, stop=Reason.TIMEOUT)
    ended = a_run(due_at=past, state=RunState.SUCCEEDED)
    await given(store, due, pending, stopping, ended, a_run(due_at=past + 60 * SECOND), a_run())

    assert await store.watch.due_runs(10) == [pending.id, due.id]


async def test_lost_tasks_point_at_sessions_that_are_over(store: Store) -> None:
    now = await now_of(store)
    live = a_session(expires_at=now + 60 * SECOND)
    expired = a_session(expires_at=now - SECOND)
    closed = a_session(expires_at=now + 60 * SECOND, closed_at=now)
    await given(store, live, expired, closed)
    running, overdue, lost = (
        a_task(state=TaskState.RUNNING, session_id=one.id) for one in (live, expired, closed)
    )
    stopping = a_task(state=TaskState.CANCELLING, session_id=closed.id)
    await given(store, running, overdue, lost, stopping)

    over = {LostTask(task.token, closed.id) for task in (lost, stopping)}
    both = over | {LostTask(overdue.token, expired.id)}

    assert set(await store.watch.lost_tasks(10, expired=False)) == over
    assert set(await store.watch.lost_tasks(10, expired=True)) == both
    assert len(await store.watch.lost_tasks(2, expired=True)) == 2


async def test_orphaned_tasks_point_at_sessions_that_are_missing(store: Store) -> None:
    closed, missing = a_session(closed_at=1), a_session()
    tasks = [a_task(state=TaskState.RUNNING, session_id=one.id) for one in (closed, missing)]
    await given(store, closed, *tasks)

    assert await store.watch.orphaned_tasks(10) == [LostTask(tasks[1].token, missing.id)]
    assert await store.watch.orphaned_tasks(0) == []


async def test_unsettled_runs_have_work_for_a_turn(store: Store) -> None:
    accepted = a_run(state=RunState.PENDING)
    roots = a_run(told=0)
    stopping = a_run(stop=Reason.CANCELLED)
    telling = a_task(state=TaskState.SUCCEEDED, told=0)
    telling_too = a_task(run_id=telling.run_id, position=1, state=TaskState.FAILED, told=2)
    stopped = a_run(state=RunState.CANCELLED, stop=Reason.CANCELLED)
    await given(store, accepted, roots, stopping, stopped, telling, telling_too, a_run(), a_task())

    found = await store.watch.unsettled_runs(10)

    assert sorted(found) == sorted([accepted.id, roots.id, stopping.id, telling.run_id])
    assert len(await store.watch.unsettled_runs(2)) == 2


async def test_ready_lanes_are_told_once_each_however_long_they_are(store: Store) -> None:
    run_id = a_run_id()
    plain = [a_task(run_id=run_id, position=place) for place in range(20)]
    others = [a_task(priority=5), a_task(priority=-5), a_task(route="gpu"), a_task(namespace="b")]
    held = [a_task(hold=ALONE), a_task(hold="breaker", route="held"), a_task(hold=ALONE, route="x")]
    await given(store, *plain, *others, *held, a_task(state=TaskState.PENDING, route="pending"))

    lanes = await store.watch.ready_lanes()

    assert sorted(lanes) == [
        ReadyLane(Lane("b", "default", 0), False),
        ReadyLane(Lane("default", "default", -5), False),
        ReadyLane(Lane("default", "default", 0), False),
        ReadyLane(Lane("default", "default", 0), True),
        ReadyLane(Lane("default", "default", 5), False),
        ReadyLane(Lane("default", "gpu", 0), False),
        ReadyLane(Lane("default", "x", 0), True),
    ]


async def test_an_empty_store_has_no_lanes(store: Store) -> None:
    assert await store.watch.ready_lanes() == []


async def test_held_by_tells_what_a_session_was_granted(store: Store) -> None:
    session = a_session()
    running = a_task(state=TaskState.RUNNING, session_id=session.id, started_at=7, epoch=3)
    other = a_task(state=TaskState.CANCELLING, session_id=a_session_id(), started_at=8)
    await given(store, session, running, other, a_task(state=TaskState.RUNNING))

    idle = a_session_id()
    assert await store.watch.held_by([session.id, idle, SessionId(str(other.session_id))]) == {
        session.id: [HeldTask(running.token, 7, False)],
        other.session_id: [HeldTask(other.token, 8, True)],
        idle: [],
    }
    assert await store.watch.held_by([]) == {}


async def test_runs_in_quarantine_are_in_no_answer(store: Store) -> None:
    past = await now_of(store) - SECOND
    run = a_run(state=RunState.PENDING, due_at=past)
    session = a_session(closed_at=past)
    granted = a_task(run_id=run.id, state=TaskState.RUNNING, session_id=session.id, due_at=past)
    ready = a_task(run_id=run.id, position=1)
    untold = a_task(run_id=run.id, position=2, state=TaskState.SUCCEEDED, told=0)
    await given(store, session, run, granted, ready, untold)

    await quarantined(store, run.id)

    watch = store.watch
    assert await watch.due_tasks(10) == []
    assert await watch.due_runs(10) == []
    assert await watch.lost_tasks(10, expired=True) == []
    assert await watch.orphaned_tasks(10) == []
    assert await watch.unsettled_runs(10) == []
    assert await watch.ready_lanes() == []
    assert await watch.held_by([session.id]) == {session.id: []}


async def test_rows_of_a_later_format_are_left_to_a_later_release(store: Store) -> None:
    past = await now_of(store) - SECOND
    later = FORMAT_MAX + 1
    run = a_run(state=RunState.PENDING, due_at=past, format=later)
    task = a_task(state=TaskState.RUNNING, due_at=past, format=later)
    await given(store, run, task)

    assert await store.watch.due_tasks(10) == []
    assert await store.watch.due_runs(10) == []
    assert await store.watch.orphaned_tasks(10) == []
    assert await store.watch.unsettled_runs(10) == []
