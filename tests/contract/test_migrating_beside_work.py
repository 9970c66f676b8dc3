"""Migrations of PostgreSQL beside processes that use the tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tidemill.domain.errors import Unavailable
from tidemill.stores.migrator import OUTSIDE, Migration, load_migrations
from tidemill.stores.postgres import migrate as migrating
from tidemill.stores.postgres.store import PostgresStore

KNOWN = load_migrations("tidemill.stores.postgres")
NEXT = len(KNOWN) + 1
SCHEMA = "beside_work"
QUICK = migrating.SET_TIMEOUTS.replace("'2000'", "'100'")
PATIENT = migrating.SET_TIMEOUTS.replace("'2000'", "'20000'")
VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'task_epoch'::REGCLASS"
KILL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE 'CREATE INDEX CONCURRENTLY task_epoch%' AND wait_event_type = 'Lock'
"""

INDEX = f"""{OUTSIDE}
-- A second try begins anew.
DROP INDEX CONCURRENTLY IF EXISTS task_epoch;
CREATE INDEX CONCURRENTLY task_epoch
    ON task (epoch);
"""


@pytest.fixture
async def connection(postgres_dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(postgres_dsn, server_settings={"search_path": SCHEMA})
    yield connection
    await connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    await connection.close()


@pytest.fixture
async def store(
    postgres_dsn: str, connection: asyncpg.Connection[asyncpg.Record]
) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_dsn, schema=SCHEMA)
    await store.migrate()
    yield store
    await store.close()


def release(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A later release, with one more migration."""
    later = [*KNOWN, Migration(NEXT, "later", text, "sum")]
    monkeypatch.setattr(migrating, "load_migrations", lambda _: later)
    monkeypatch.setattr(migrating, "SET_TIMEOUTS", QUICK)


async def test_what_is_left_is_named_and_told_when_done(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    release(monkeypatch, "ALTER TABLE task ADD COLUMN colour TEXT;")

    before = await store.migrations_left()
    await store.migrate(told.append)

    title = f"{NEXT:04}_later"
    assert before == [title]
    assert told == [f"applied {title}"]
    assert await store.migrations_left() == []


async def test_an_index_is_made_outside_a_transaction(
    store: PostgresStore,
    connection: asyncpg.Connection[asyncpg.Record],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release(monkeypatch, INDEX)

    await asyncio.gather(store.migrate(), store.migrate())

    assert await connection.fetchval(VALID) is True


async def test_a_migrator_killed_in_the_midst_of_an_index_leaves_work_that_can_be_repeated(
    store: PostgresStore,
    connection: asyncpg.Connection[asyncpg.Record],
    postgres_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release(monkeypatch, INDEX)
    monkeypatch.setattr(migrating, "SET_TIMEOUTS", PATIENT)
    writer = await asyncpg.connect(postgres_dsn)

    async with writer.transaction():
        await writer.execute(f"LOCK TABLE {SCHEMA}.task IN ROW EXCLUSIVE MODE")
        migration = asyncio.create_task(store.migrate())
        while not await connection.fetchval(KILL):
            await connection.execute("SELECT pg_sleep(0.02)")
        with pytest.raises(Unavailable):
            await migration
    assert await connection.fetchval(VALID) is False
    await store.migrate()
    await writer.close()

    assert await connection.fetchval(VALID) is True


async def test_a_migration_waits_for_a_table_in_use_without_holding_others_up(
    store: PostgresStore,
    connection: asyncpg.Connection[asyncpg.Record],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = asyncio.Event()
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        waits.set()

    release(monkeypatch, "ALTER TABLE task ADD COLUMN colour TEXT;")
    async with connection.transaction():
        await connection.execute("SELECT * FROM task")
        migration = asyncio.create_task(store.migrate(tell))
        await waits.wait()
        assert await store.watch.due_tasks(1) == []
    await migration

    assert told == [f"{NEXT:04}_later waits for a table that is in use", f"applied {NEXT:04}_later"]


async def test_patience_with_a_table_in_use_has_an_end(
    store: PostgresStore,
    connection: asyncpg.Connection[asyncpg.Record],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release(monkeypatch, "ALTER TABLE task ADD COLUMN colour TEXT;")
    monkeypatch.setattr(migrating, "TRIES_MAX", 2)

    async with connection.transaction():
        await connection.execute("SELECT * FROM task")
        with pytest.raises(Unavailable, match="did not get its locks"):
            await store.migrate()

    assert len(await store.migrations_left()) == 1
    assert await store.watch.due_tasks(1) == []
