"""Brings a PostgreSQL schema up to date, beside processes that go on working on it.

A migration waits for its locks for two seconds at most, because everybody behind it waits too;
then it lets go and tries again a little later. Whoever migrates holds an advisory lock, which is
asked for again and again rather than waited for: CREATE INDEX CONCURRENTLY waits for the end of
every statement under way, also of one that waits for the migrator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import asyncpg

from tidemill.domain.errors import Unavailable
from tidemill.stores.migrator import Migration, left_to_apply, load_migrations
from tidemill.stores.postgres.connection import PooledConnection, mapped_errors

TRIES_MAX = 60  # with their pauses, some minutes
PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 2.0
STATEMENT_SECONDS_MAX = 24 * 3_600.0

TAKE_LOCK = "SELECT pg_try_advisory_lock(hashtextextended('tidemill migration of ' || $1, 0))"
GIVE_LOCK = "SELECT pg_advisory_unlock(hashtextextended('tidemill migration of ' || $1, 0))"
SET_TIMEOUTS = """
SELECT set_config('lock_timeout', '2000', FALSE), set_config('statement_timeout', '0', FALSE)
"""
RESET_TIMEOUTS = "RESET lock_timeout; RESET statement_timeout"
CREATE_MIGRATION = """
CREATE TABLE IF NOT EXISTS migration (
    number   INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    checksum TEXT NOT NULL
)
"""


async def migrations_left(connection: PooledConnection) -> Sequence[Migration]:
    """What is left to apply; looks only."""
    known = await connection.fetchval("SELECT to_regclass('migration') IS NOT NULL")
    rows = await connection.fetch("SELECT number, checksum FROM migration") if known else []
    applied = {row[0]: row[1] for row in rows}
    return left_to_apply(load_migrations("tidemill.stores.postgres"), applied)


class Migrator:
    """Applies what is left, each migration all or nothing; a second one finds nothing to do."""

    def __init__(
        self, connection: PooledConnection, schema: str | None, tell: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._tell = tell

    async def migrate(self) -> None:
        """Apply; Unavailable when others do not let go of what is needed."""
        with mapped_errors():
            async with self._alone():
                if self._schema is not None:
                    await _create_schema(self._connection, self._schema)
                await self._connection.execute(CREATE_MIGRATION)
                for migration in await migrations_left(self._connection):
                    await self._patiently(migration)
                    self._tell(f"applied {migration.title}")

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        key = self._schema or ""
        await self._take_lock(key)
        try:
            await self._connection.execute(SET_TIMEOUTS)
            yield
        finally:
            # The pool hands the connection on as it is. A connection that is lost has let go.
            if not self._connection.is_closed():
                await self._connection.execute(RESET_TIMEOUTS)
                await self._connection.fetchval(GIVE_LOCK, key)

    async def _take_lock(self, key: str) -> None:
        for number in range(TRIES_MAX):
            if await self._connection.fetchval(TAKE_LOCK, key):
                return
            if number == 0:
                self._tell("another process migrates this schema: waiting for it")
            await _pause(number)
        raise Unavailable("another process has been migrating this schema for long: look at it")

    async def _patiently(self, migration: Migration) -> None:
        apply = self._apply_outside if migration.is_outside else self._apply
        for number in range(TRIES_MAX):
            try:
                return await apply(migration)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                if number == 0:
                    self._tell(f"{migration.title} waits for a table that is in use")
            await _pause(number)
        raise Unavailable(f"{migration.title} did not get its locks: end long transactions first")

    async def _apply(self, migration: Migration) -> None:
        async with self._connection.transaction():
            for statement in migration.statements:
                await self._connection.execute(statement, timeout=STATEMENT_SECONDS_MAX)
            await _record(self._connection, migration)

    async def _apply_outside(self, migration: Migration) -> None:
        for statement in migration.statements:
            await self._connection.execute(statement, timeout=STATEMENT_SECONDS_MAX)
        await _record(self._connection, migration)


async def _pause(number: int) -> None:
    """Wait a little longer each time; a migrator is no role, and has no clock of its own."""
    waiting: Awaitable[bool] = asyncio.Event().wait()
    try:
        async with asyncio.timeout(min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2.0**number)):
            await waiting
    except TimeoutError:
        return


async def _create_schema(connection: PooledConnection, schema: str) -> None:
    # The server quotes the name: identifiers cannot be parameters.
    statement = await connection.fetchval(
        "SELECT format('CREATE SCHEMA IF NOT EXISTS %I', $1::TEXT)", schema
    )
    await connection.execute(statement)


async def _record(connection: PooledConnection, migration: Migration) -> None:
    await connection.execute(
        "INSERT INTO migration (number, name, checksum) VALUES ($1, $2, $3)",
        migration.number,
        migration.name,
        migration.checksum,
    )
