"""The contract of SessionTable and of renewals."""

from __future__ import annotations

from msgspec import structs

from tests.builders import a_pool_id, a_session, a_session_id, a_task
from tests.contract.given import given, now_of
from tidemill.domain.identifiers import SECOND
from tidemill.domain.task_run import TaskState
from tidemill.ports.store import HeldTask, Session, Store


async def opened(store: Store, seconds: int) -> Session:
    session = a_session(expires_at=await now_of(store) + seconds * SECOND)
    await given(store, session)
    return session


async def found(store: Store, session: Session) -> Session | None:
    async with store.transaction() as tx:
        return await tx.sessions.get(session.id)


async def closed(store: Store, *sessions: Session) -> None:
    async with store.transaction() as tx:
        await tx.sessions.close([session.id for session in sessions])


async def test_a_session_comes_back_as_it_was_opened(store: Store) -> None:
    session = a_session(
        queues=("default", "gpu"), labels={"zone": "eu"}, slots=8, offers=("noop", "python:a:b")
    )
    await given(store, session)

    assert await found(store, session) == session


async def test_an_unknown_session_is_none(store: Store) -> None:
    assert await found(store, a_session()) is None


async def test_a_lock_tells_who_is_open_and_unexpired(store: Store) -> None:
    live, expired, gone = await opened(store, 60), await opened(store, -1), await opened(store, 60)
    await closed(store, gone)

    async with store.transaction() as tx:
        ids = [live.id, expired.id, gone.id, a_session_id()]
        assert await tx.sessions.lock(ids) == {live.id}


async def test_a_renewal_of_its_own_counts_from_the_clock_of_the_database(store: Store) -> None:
    session = await opened(store, -1)
    before = await now_of(store)

    assert await store.renew_sessions([session.id], 6 * SECOND) == {session.id}

    renewed = await found(store, session)
    assert renewed is not None
    assert before + 6 * SECOND <= renewed.expires_at <= await now_of(store) + 6 * SECOND


async def test_a_session_that_was_replaced_is_closed_and_names_its_successor(store: Store) -> None:
    old, new = await opened(store, 60), await opened(store, 60)

    async with store.transaction() as tx:
        await tx.sessions.get(old.id)
        await tx.sessions.replace(old.id, new.id)

    replaced = await found(store, old)
    assert replaced is not None
    assert replaced.successor == new.id
    assert replaced.closed_at is not None


async def test_a_closed_session_stays_closed(store: Store) -> None:
    session = await opened(store, 60)
    await closed(store, session)
    first = await found(store, session)

    await closed(store, session)

    assert await store.renew_sessions([session.id], SECOND) == set()
    assert first is not None
    assert first.closed_at is not None
    assert await found(store, session) == first


async def test_a_new_owner_closes_all(store: Store) -> None:
    one, other = await opened(store, 60), await opened(store, 60)

    async with store.transaction() as tx:
        await tx.sessions.close_all()

    async with store.transaction() as tx:
        assert await tx.sessions.lock([one.id, other.id]) == set()


async def test_a_session_holds_what_it_was_granted(store: Store) -> None:
    session = await opened(store, 60)
    running = a_task(state=TaskState.RUNNING, session_id=session.id, started_at=5)
    stopping = a_task(state=TaskState.CANCELLING, session_id=session.id, started_at=6)
    await given(store, running, stopping, a_task(state=TaskState.RUNNING))

    async with store.transaction() as tx:
        await tx.sessions.get(session.id)
        held = await tx.sessions.held(session.id)

    assert held == [HeldTask(running.token, 5, False), HeldTask(stopping.token, 6, True)]


async def test_old_sessions_are_forgotten_unless_a_task_points_at_them(store: Store) -> None:
    now = await now_of(store)
    live, expired, busy = [await opened(store, seconds) for seconds in (60, -60, -60)]
    await given(store, a_task(state=TaskState.RUNNING, session_id=busy.id))

    async with store.transaction() as tx:
        assert await tx.sessions.prune(now - 120 * SECOND) == 0
        assert await tx.sessions.prune(now - SECOND) == 1

    assert await found(store, expired) is None
    assert await found(store, busy) == busy
    assert await found(store, live) == live


async def test_a_session_that_is_opened_twice_is_left_as_it_was(store: Store) -> None:
    session = a_session(slots=8)
    await given(store, session)

    await given(store, structs.replace(session, slots=9))

    assert await found(store, session) == session


async def test_the_grants_of_a_pool_and_its_members_are_counted(store: Store) -> None:
    pool, member = a_session(id=a_pool_id()), a_session()
    waiting = [a_task(state=TaskState.RUNNING, session_id=pool.id) for _ in range(2)]
    bound = a_task(state=TaskState.CANCELLING, session_id=member.id)
    await given(store, pool, member, *waiting, bound, a_task(state=TaskState.RUNNING))

    async with store.transaction() as tx:
        idle = a_session_id()
        counts = await tx.sessions.count_granted([pool.id, a_pool_id()], [member.id, idle])

    assert counts == {pool.id: 2, member.id: 1, idle: 0}


async def test_pools_outlive_a_new_owner_and_are_not_listed(store: Store) -> None:
    pool = a_session(id=a_pool_id(), expires_at=await now_of(store) + 60 * SECOND)
    await given(store, pool)

    async with store.transaction() as tx:
        await tx.sessions.close_all()

    assert await found(store, pool) == pool
    assert await store.reader.sessions("default") == []
