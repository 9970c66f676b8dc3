"""What only a server with many connections can do wrong, done on purpose."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from tests.builders import a_new_run, a_run, a_task
from tests.contract.given import LANE, claimed, given
from tests.contract.lossy_proxy import LossyProxy, lossy_proxy
from tidemill.domain.errors import CommitUnknown, NotFound, TidemillError, Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.domain.task_run import TaskRun
from tidemill.stores.errors import StoreRefused
from tidemill.stores.postgres.connection import mapped_errors
from tidemill.stores.postgres.store import PostgresStore

CANCEL_SECONDS = 10.0  # a command that nobody bounds takes 15


async def lock_both(
    store: PostgresStore, first: RunId, second: RunId, meeting: asyncio.Barrier
) -> None:
    async with store.transaction() as tx:
        await tx.runs.lock([first], wait=True)
        await meeting.wait()
        await tx.runs.lock([second], wait=True)


async def test_a_deadlock_is_reported_as_unavailable_and_a_retry_succeeds(
    postgres: PostgresStore,
) -> None:
    one, other, meeting = a_run(), a_run(), asyncio.Barrier(2)
    await given(postgres, one, other)

    results = await asyncio.gather(
        lock_both(postgres, one.id, other.id, meeting),
        lock_both(postgres, other.id, one.id, meeting),
        return_exceptions=True,
    )

    (victim,) = [result for result in results if result is not None]
    assert type(victim) is Unavailable
    assert "deadlock" in str(victim)
    await lock_both(postgres, one.id, other.id, asyncio.Barrier(1))


@pytest.fixture
async def behind_proxy(
    postgres_dsn: str, postgres: PostgresStore
) -> AsyncIterator[tuple[LossyProxy, PostgresStore]]:
    # Not in tmp_path: the path of a unix socket must be short.
    with tempfile.TemporaryDirectory() as folder:
        async with lossy_proxy(postgres_dsn, Path(folder)) as (proxy, dsn):
            store = PostgresStore(dsn, schema=postgres._schema)
            yield proxy, store
            await store.close()


async def a_transaction(store: PostgresStore) -> None:
    async with store.transaction() as tx:
        await tx.now()


async def a_look(store: PostgresStore) -> None:
    await store.watch.due_runs(1)


@pytest.mark.parametrize("work", [a_transaction, a_look])
async def test_who_is_cancelled_while_the_server_is_frozen_ends_cancelled_and_soon(
    behind_proxy: tuple[LossyProxy, PostgresStore], work: Callable[[PostgresStore], Awaitable[None]]
) -> None:
    proxy, store = behind_proxy
    await work(store)
    proxy.frozen = True
    working = asyncio.ensure_future(work(store))
    await asyncio.wait([working], timeout=0.2)

    working.cancel()
    await asyncio.wait([working], timeout=CANCEL_SECONDS)

    assert working.cancelled()


async def test_fault_37_a_commit_whose_answer_is_lost_is_unknown_and_the_write_is_found(
    behind_proxy: tuple[LossyProxy, PostgresStore],
) -> None:
    proxy, store = behind_proxy
    new = a_new_run()
    proxy.lose_next_commit = True

    with pytest.raises(CommitUnknown):
        async with store.transaction() as tx:
            await tx.runs.add([new])

    assert await store.reader.run("default", new.run.id) == new.run


async def test_a_connection_lost_before_the_commit_is_no_commit(postgres: PostgresStore) -> None:
    new = a_new_run()

    async def write() -> None:
        async with postgres.transaction() as tx:
            await tx.runs.add([new])
            await cut_other_connections(postgres)
            await tx.outbox.append(b"[]")

    with pytest.raises(Unavailable) as loss:
        await write()

    assert not isinstance(loss.value, CommitUnknown)
    with pytest.raises(NotFound):
        await postgres.reader.run("default", new.run.id)


async def test_a_store_goes_on_after_its_connections_were_cut(postgres: PostgresStore) -> None:
    run = a_run()
    await given(postgres, run)
    await postgres.renew_sessions([], 1)

    await cut_other_connections(postgres)
    await until_answered(postgres, run.id)

    assert await postgres.reader.run("default", run.id) == run


async def cut_other_connections(store: PostgresStore) -> None:
    pool = await store._pool.get()
    async with pool.acquire() as connection:
        await connection.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND application_name = 'tidemill'"
        )


async def until_answered(store: PostgresStore, run_id: RunId) -> None:
    for _ in range(20):
        try:
            await store.reader.run("default", run_id)
        except Unavailable:
            continue
        return


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    store = PostgresStore("postgresql://nobody@/none?host=/nowhere")

    with pytest.raises(Unavailable):
        await store.migrate()
    with pytest.raises(Unavailable):
        await PostgresStore.connect("postgresql://nobody@/none?host=/nowhere")
    await store.close()


async def test_a_stale_cached_statement_is_unavailable_and_a_retry_succeeds(
    postgres: PostgresStore,
) -> None:
    run = a_run()
    await given(postgres, run)
    pool = await postgres._pool.get()

    async def change_under_it() -> None:
        async with postgres.transaction() as tx:
            await tx.runs.peek([run.id])
        async with pool.acquire() as connection:
            await connection.execute("ALTER TABLE run ALTER COLUMN workflow TYPE VARCHAR(200)")
        async with postgres.transaction() as tx:
            await tx.runs.peek([run.id])

    with pytest.raises(Unavailable, match="cached"):
        await change_under_it()

    async with postgres.transaction() as tx:
        assert await tx.runs.lock([run.id], wait=True) == [run]


async def test_claims_go_on_while_a_foreign_snapshot_is_held_open(
    postgres_dsn: str, postgres: PostgresStore
) -> None:
    tasks = [a_task() for _ in range(10)]
    await given(postgres, *tasks)
    foreign = await asyncpg.connect(postgres_dsn)
    async with foreign.transaction(isolation="repeatable_read", readonly=True):
        await foreign.fetch("SELECT count(*) FROM pg_class")

        floor = 0
        taken: list[TaskRun] = []
        while len(taken) < 10:
            async with postgres.transaction() as tx:
                claim = await tx.tasks.claim(LANE, floor=floor, limit=3, alone=False)
                floor, taken = claim.floor, taken + claim.tasks

    assert taken == tasks
    await foreign.close()


ERRORS: list[tuple[Exception, type[TidemillError]]] = [
    (asyncpg.SerializationError("40001"), Unavailable),
    (asyncpg.QueryCanceledError("57014"), Unavailable),
    (asyncpg.AdminShutdownError("57P01"), Unavailable),
    (asyncpg.TooManyConnectionsError("53300"), Unavailable),
    (asyncpg.DiskFullError("53100"), Unavailable),
    (asyncpg.ReadOnlySQLTransactionError("25006"), Unavailable),
    (asyncpg.InterfaceError("connection is closed"), Unavailable),
    (ConnectionResetError("reset"), Unavailable),
    (TimeoutError(), Unavailable),
    (asyncpg.UniqueViolationError("23505"), StoreRefused),
    (asyncpg.DataError("22003"), StoreRefused),
]


@pytest.mark.parametrize(("error", "told"), ERRORS, ids=lambda value: getattr(value, "args", ""))
def test_errors_are_told_in_the_words_of_the_domain(
    error: Exception, told: type[TidemillError]
) -> None:
    with pytest.raises(TidemillError) as raised, mapped_errors():
        raise error

    assert type(raised.value) is told


@pytest.mark.parametrize("error", [asyncpg.AdminShutdownError(""), OSError(), TimeoutError()])
def test_a_connection_lost_in_a_commit_leaves_it_open(error: Exception) -> None:
    with pytest.raises(CommitUnknown), mapped_errors(commit=True):
        raise error


def test_a_commit_that_the_server_refuses_is_no_commit() -> None:
    with pytest.raises(Unavailable) as raised, mapped_errors(commit=True):
        raise asyncpg.SerializationError("40001")

    assert type(raised.value) is Unavailable


async def test_what_is_no_uuid_is_not_stored(postgres: PostgresStore) -> None:
    with pytest.raises(StoreRefused):
        await given(postgres, a_run(id=RunId("orders")))

    assert await claimed(postgres) == []
