"""The contract of what a turn begins and ends with: Transaction.open and Transaction.write."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.builders import a_run, a_session, a_task
from tests.contract.given import LANE, claimed, given, now_of, task_of
from tidemill.domain.errors import TidemillError
from tidemill.domain.identifiers import SECOND, TaskKey
from tidemill.domain.run import RunState
from tidemill.domain.task_run import Attempt, Reason, TaskError, TaskRun, TaskState
from tidemill.ports.store import Changes, Opened, Opening, Session, Store, TaskResult
from tidemill.stores.postgres.store import PostgresStore

replace = msgspec.structs.replace

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


async def opened(store: Store, opening: Opening) -> Opened:
    async with store.transaction() as tx:
        return await tx.open(opening)


def running(task: TaskRun, session: Session) -> TaskRun:
    return replace(task, state=TaskState.RUNNING, epoch=task.epoch + 1, session_id=session.id)


def lost(task: TaskRun, session: Session) -> Attempt:
    return Attempt(
        run_id=task.run_id,
        position=task.position,
        epoch=1,
        attempt=1,
        reason=Reason.LOST,
        session_id=session.id,
        started_at=1,
        ended_at=2,
    )


@pytest.fixture
async def session(store: Store) -> Session:
    session = a_session(expires_at=await now_of(store) + 60 * SECOND)
    await given(store, session)
    return session


@pytest.mark.parametrize("wait", [False, True])
async def test_all_is_had_in_order_of_key(store: Store, session: Session, wait: bool) -> None:
    gone = a_session(expires_at=0)
    first, second = a_task(position=3), a_task()
    await given(store, gone, second, first)
    runs, keys = [second.run_id, first.run_id], [second.key, first.key]

    had = await opened(store, Opening([session.id, gone.id], runs, keys, wait))

    assert had.alive == {session.id}
    assert [run.id for run in had.runs] == [first.run_id, second.run_id]
    assert had.tasks == [first, second]
    assert had.now >= session.expires_at - 60 * SECOND


@pytest.mark.parametrize("wait", [False, True])
async def test_what_is_not_there_is_left_out(store: Store, wait: bool) -> None:
    run, other = a_run(), a_task()
    await given(store, run, other)
    missing = [TaskKey(run.id, 7), other.key]

    had = await opened(store, Opening(["nobody"], [run.id, "no uuid"], missing, wait))  # type: ignore[list-item]

    assert (had.alive, had.runs, had.tasks) == (set(), [run], [])


async def test_opening_nothing_tells_the_time(store: Store) -> None:
    before = await now_of(store)

    had = await opened(store, Opening([], [], []))

    assert had.now >= before
    assert (had.alive, had.runs, had.tasks) == (set(), [], [])


async def test_runs_in_quarantine_are_not_opened_nor_claimed(store: Store) -> None:
    task = a_task()
    await given(store, task)
    async with store.transaction() as tx:
        await tx.runs.quarantine(task.run_id, "odd")

    had = await opened(store, Opening([], [task.run_id], [task.key]))

    assert (had.runs, had.tasks) == ([], [])


async def test_a_claim_brings_each_run_once(store: Store) -> None:
    run = a_run(labels={"team": "blue"})
    await given(store, run, a_task(run_id=run.id), a_task(run_id=run.id, position=1))

    async with store.transaction() as tx:
        claim = await tx.tasks.claim(LANE, floor=0, limit=10, alone=False)

    assert claim.runs == [run]
    assert [task.position for task in claim.tasks] == [0, 1]


async def test_everything_is_written(store: Store, session: Session) -> None:
    run = a_run(open=2, next_position=2)
    task = a_task(run_id=run.id)
    await given(store, run, task)
    error = TaskError(type="Odd", message='a "quoted"\0 \\ ü\n,{}')
    ended = replace(
        running(task, session), state=TaskState.FAILED, session_id=None, ended_at=5, error=error
    )
    attempt = lost(task, session)
    new, stopped = a_task(run_id=run.id, position=1), replace(run, stop=Reason.TIMEOUT, open=1)

    async with store.transaction() as tx:
        await tx.open(Opening([], [run.id], [task.key]))
        await tx.write(
            Changes(
                new_tasks=[new],
                tasks=[ended],
                runs=[stopped],
                results=[TaskResult(task.key, b"7")],
                attempts=[attempt],
                facts=[b"a", b"b"],
            )
        )
        await tx.outbox.stamp(10)
        rows = await tx.outbox.read(0, 10)

    assert await task_of(store, task.key) == ended
    assert await task_of(store, new.key) == new
    assert await store.reader.run("default", run.id) == stopped
    assert await store.payloads.results([task.key]) == {task.key: b"7"}
    assert await store.reader.attempts("default", task.key) == [attempt]
    assert [row.facts for row in rows] == [b"a", b"b"]


async def test_results_alone_find_their_run(store: Store) -> None:
    task = a_task()
    await given(store, task)

    async with store.transaction() as tx:
        await tx.write(Changes(results=[TaskResult(task.key, b"7")]))

    assert await store.payloads.results([task.key]) == {task.key: b"7"}


async def test_grants_alone_are_written(store: Store, session: Session) -> None:
    task = a_task()
    await given(store, task)

    async with store.transaction() as tx:
        (waiting,) = (await tx.tasks.claim(LANE, floor=0, limit=1, alone=False)).tasks
        await tx.write(Changes(tasks=[running(waiting, session)], facts=[b"granted"]))

    assert await task_of(store, task.key) == running(task, session)


@pytest.mark.parametrize("with_a_run", [False, True])
async def test_what_comes_back_from_a_worker_keeps_its_place(
    store: Store, session: Session, with_a_run: bool
) -> None:
    run, first, second = a_run(), a_task(), a_task()
    await given(store, run, first, second)
    runs = [replace(run, ended=1)] if with_a_run else []

    for changed in (running(first, session), replace(first, epoch=1)):
        async with store.transaction() as tx:
            await tx.write(Changes(tasks=[changed], runs=runs, facts=[b"x"]))

    assert await claimed(store) == [replace(first, epoch=1), second]


async def test_columns_take_other_values_and_their_defaults_again(store: Store) -> None:
    run, task = a_run(), a_task()
    await given(store, run, task)
    counts = {"failures": 1, "losses": 2, "waiting": 3, "failed": 4, "skipped": 5, "priority": 6}
    other = replace(task, **counts, epoch=7, hold="breaker", due_at=8, ready_at=9, started_at=10)
    moved = replace(run, failed=1, ended=2, told=3, generation=4, due_at=5, started_at=6, swept=7)
    plain = replace(task, epoch=7)

    for changed, back in (([other], [moved]), ([plain], [replace(run, generation=4)])):
        async with store.transaction() as tx:
            await tx.write(Changes(tasks=changed, runs=back, facts=[b"x"]))

        assert await task_of(store, task.key) == changed[0]
        assert await store.reader.run("default", run.id) == back[0]


async def test_a_refused_move_undoes_the_whole_write(store: Store) -> None:
    run = a_run(state=RunState.SUCCEEDED)
    task = a_task(run_id=run.id)
    await given(store, run, task)
    again = replace(run, state=RunState.RUNNING, ended_at=None)
    changes = Changes(tasks=[replace(task, priority=5)], runs=[again], facts=[b"x"])

    with pytest.raises(TidemillError):
        async with store.transaction() as tx:
            await tx.write(changes)

    assert await task_of(store, task.key) == task


async def test_tasks_of_runs_that_others_hold_are_not_waited_for(postgres: PostgresStore) -> None:
    held, free = a_task(), a_task()
    await given(postgres, held, free)

    async with postgres.transaction() as one:
        await one.open(Opening([], [held.run_id], [held.key]))
        had = await opened(postgres, Opening([], [held.run_id, free.run_id], [held.key, free.key]))

    assert had.tasks == [free]


@pytest.mark.usefixtures("patience")
async def test_a_task_that_is_waited_for_comes_back_as_it_is_then(
    postgres: PostgresStore,
) -> None:
    session, task = a_session(), a_task()
    await given(postgres, session, task)

    async with postgres.transaction() as claimer:
        (claimed,) = (await claimer.tasks.claim(LANE, floor=0, limit=1, alone=False)).tasks
        opening = Opening([], [task.run_id], [task.key])
        waiting = asyncio.create_task(opened(postgres, opening))
        await until_somebody_waits(postgres)
        await claimer.tasks.save([running(claimed, session)])

    assert (await waiting).tasks == [running(task, session)]


async def until_somebody_waits(postgres: PostgresStore) -> None:
    pool = await postgres._pool.get()
    async with pool.acquire() as connection, asyncio.timeout(20):
        while not await connection.fetchval(WAITING):
            pass
