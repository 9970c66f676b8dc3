"""Who waits for whom on PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import a_run, a_session, a_start_key, a_task
from tests.contract.given import LANE, given, now_of
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import SECOND
from tidemill.ports.store import Session
from tidemill.stores.postgres.connection import SETTINGS
from tidemill.stores.postgres.store import PostgresStore


@pytest.fixture
async def session(postgres: PostgresStore) -> Session:
    session = a_session(expires_at=await now_of(postgres) + 60 * SECOND)
    await given(postgres, session)
    return session


async def test_runs_that_others_hold_are_left_out(postgres: PostgresStore) -> None:
    held, free = a_run(), a_run()
    await given(postgres, held, free)

    async with postgres.transaction() as one, postgres.transaction() as other:
        await one.runs.lock([held.id], wait=True)

        assert await other.runs.lock([held.id, free.id], wait=False) == [free]
        assert await other.runs.peek([held.id, free.id]) == [held, free]


async def test_waiting_for_a_run_ends_with_the_lock_timeout(postgres: PostgresStore) -> None:
    held = a_run()
    await given(postgres, held)

    async def wait() -> None:
        async with postgres.transaction() as other:
            await other.runs.lock([held.id], wait=True)

    async with postgres.transaction() as one:
        await one.runs.lock([held.id], wait=True)

        with pytest.raises(Unavailable, match="lock timeout"):
            await wait()


async def test_a_claim_skips_what_others_have_claimed(postgres: PostgresStore) -> None:
    first, second = a_task(), a_task()
    await given(postgres, first, second)

    async with postgres.transaction() as one, postgres.transaction() as other:
        mine = await one.tasks.claim(LANE, floor=0, limit=1, alone=False)
        theirs = await other.tasks.claim(LANE, floor=0, limit=10, alone=False)

    assert (mine.tasks, theirs.tasks) == ([first], [second])


async def test_a_locked_session_can_be_renewed(postgres: PostgresStore, session: Session) -> None:
    async with postgres.transaction() as turn:
        assert await turn.sessions.lock([session.id]) == {session.id}

        assert await postgres.renew_sessions([session.id], SECOND) == {session.id}


async def test_a_locked_session_cannot_be_closed(postgres: PostgresStore, session: Session) -> None:
    async def close() -> None:
        async with postgres.transaction() as other:
            await other.sessions.close([session.id])

    async with postgres.transaction() as turn:
        await turn.sessions.lock([session.id])

        with pytest.raises(Unavailable, match="lock timeout"):
            await close()

    await close()
    assert await postgres.reader.sessions("default") == []


@pytest.mark.usefixtures("patience")
async def test_a_session_is_closed_once_the_turn_that_locked_it_is_over(
    postgres: PostgresStore, session: Session
) -> None:
    async def close() -> None:
        async with postgres.transaction() as other:
            await other.sessions.close([session.id])

    async with postgres.transaction() as turn:
        await turn.sessions.lock([session.id])
        closing = asyncio.create_task(close())
        await asyncio.wait([closing], timeout=0.05)
        assert not closing.done()

    await closing
    async with postgres.transaction() as turn:
        assert await turn.sessions.lock([session.id]) == set()


async def test_whoever_gets_a_session_has_it_alone(
    postgres: PostgresStore, session: Session
) -> None:
    async def lock() -> None:
        async with postgres.transaction() as turn:
            await turn.sessions.lock([session.id])

    async with postgres.transaction() as tx:
        await tx.sessions.get(session.id)

        with pytest.raises(Unavailable, match="lock timeout"):
            await lock()


async def test_renewals_do_not_wait_for_a_free_connection(
    postgres_dsn: str, postgres: PostgresStore, session: Session
) -> None:
    narrow = PostgresStore(postgres_dsn, schema=postgres._schema, pool_size_max=1)

    async with narrow.transaction(), asyncio.timeout(20):
        assert await narrow.renew_sessions([session.id], SECOND) == {session.id}

    await narrow.close()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("winner_commits", [True, False])
async def test_the_loser_of_a_start_key_waits_for_the_winner(
    postgres: PostgresStore, winner_commits: bool
) -> None:
    winner, loser = a_start_key(), a_start_key()

    async def win(taken: asyncio.Event, go_on: asyncio.Event) -> None:
        async with postgres.transaction() as tx:
            await tx.starts.take_keys([winner])
            taken.set()
            await go_on.wait()
            if not winner_commits:
                raise RuntimeError

    async def lose() -> str:
        async with postgres.transaction() as tx:
            return (await tx.starts.take_keys([loser]))[0].run_id

    taken, go_on = asyncio.Event(), asyncio.Event()
    winning = asyncio.create_task(win(taken, go_on))
    await taken.wait()
    losing = asyncio.create_task(lose())
    await asyncio.wait([losing], timeout=0.05)
    go_on.set()
    await asyncio.wait([winning])

    assert (winning.exception() is None) == winner_commits
    assert await losing == (winner.run_id if winner_commits else loser.run_id)


async def test_a_row_that_becomes_visible_late_is_stamped_late_and_not_lost(
    postgres: PostgresStore,
) -> None:
    async with postgres.transaction() as slow:
        await slow.outbox.append(b"first")
        async with postgres.transaction() as quick:
            await quick.outbox.append(b"second")
        async with postgres.transaction() as relay:
            assert await relay.outbox.stamp(10) == 1

    async with postgres.transaction() as relay:
        assert await relay.outbox.stamp(10) == 1
        rows = await relay.outbox.read(0, 10)

    assert [(row.position, row.facts) for row in rows] == [(1, b"second"), (2, b"first")]
    assert rows[0].number > rows[1].number


@pytest.mark.usefixtures("patience")
async def test_a_second_leader_waits_for_the_row_of_the_first(postgres: PostgresStore) -> None:
    async def lead(holder: str) -> bool:
        async with postgres.transaction() as tx:
            return await tx.outbox.lead("relay", holder, 60 * SECOND)

    async with postgres.transaction() as tx:
        assert await tx.outbox.lead("relay", "a", 60 * SECOND)
        second = asyncio.create_task(lead("b"))
        await asyncio.wait([second], timeout=0.05)
        assert not second.done()

    assert not await second


async def test_a_connection_holds_nobody_up_for_long(postgres: PostgresStore) -> None:
    pool = await postgres._pool.get()
    async with pool.acquire() as connection:
        rows = await connection.fetch(
            "SELECT name, setting FROM pg_settings WHERE name = ANY($1::TEXT[])", list(SETTINGS)
        )

    assert {name: setting for name, setting in rows} == SETTINGS  # noqa: C416
