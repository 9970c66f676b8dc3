"""The store on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import SessionId
from tidemill.stores.postgres.connection import (
    RELEASE_SECONDS,
    Greet,
    Pool,
    PooledConnection,
    mapped_errors,
    open_pool,
)
from tidemill.stores.postgres.high_water import HighWater
from tidemill.stores.postgres.migrate import Migrator, migrations_left
from tidemill.stores.postgres.statements import ConnectionStatements, PoolStatements, acquired
from tidemill.stores.postgres.transaction import PostgresTransaction
from tidemill.stores.stamp_floor import StampFloor
from tidemill.stores.tables.identity_reader import StoreIdentityReader
from tidemill.stores.tables.payloads import StorePayloads
from tidemill.stores.tables.reader import StoreReader
from tidemill.stores.tables.sessions import in_order
from tidemill.stores.tables.watch import StoreWatch

CLOSE_SECONDS = 2.0


class PostgresStore:
    """Implements ports.store.Store on a pool of connections, opened when they are needed.

    Renewals of sessions have a connection of their own, which no turn can occupy.
    """

    def __init__(self, dsn: str, *, pool_size_max: int = 10, schema: str | None = None) -> None:
        self._schema = schema
        self._high_water = HighWater()
        self._stamp_floor = StampFloor()
        self._pool = LazyPool(dsn, pool_size_max, schema, self._high_water.check)
        self._renewals = LazyPool(dsn, 1, schema)
        statements = PoolStatements(self._pool.get)
        self.watch = StoreWatch(statements)
        self.payloads = StorePayloads(statements)
        self.reader = StoreReader(statements)
        self.identity = StoreIdentityReader(statements)

    @classmethod
    async def connect(
        cls, dsn: str, *, pool_size_max: int = 10, schema: str | None = None
    ) -> PostgresStore:
        """A store whose server is known to answer; Unavailable when it does not."""
        store = cls(dsn, pool_size_max=pool_size_max, schema=schema)
        async with acquired(await store._pool.get()):
            return store

    def transaction(self) -> AbstractAsyncContextManager[PostgresTransaction]:
        """Commit when the block ends, roll back when it raises."""
        return self._transaction(self._pool)

    @asynccontextmanager
    async def _transaction(self, pool: LazyPool) -> AsyncIterator[PostgresTransaction]:
        async with acquired(await pool.get()) as connection:
            try:
                with mapped_errors():
                    await connection.execute("BEGIN")
                transaction = PostgresTransaction(ConnectionStatements(connection))
                transaction.outbox.floor = self._stamp_floor
                yield transaction
            except BaseException:
                await _roll_back(connection)
                raise
            await _commit(connection)
            self._high_water.committed(transaction.outbox.latest)

    async def renew_sessions(
        self, session_ids: Sequence[SessionId], ttl_micros: int
    ) -> set[SessionId]:
        """Renew on a connection of its own, so that no turn delays it."""
        statements = PoolStatements(self._renewals.get)
        keys = in_order(session_ids)
        rows = await statements.fetch_batch("renew_sessions_for", keys, ttl_micros)
        return {SessionId(row[0]) for row in rows}

    async def migrate(self, tell: Callable[[str], None] | None = None) -> None:
        """Bring the schema up to date, beside processes that work on it."""
        async with acquired(await self._pool.get()) as connection:
            await Migrator(connection, self._schema, tell or _nobody).migrate()

    async def migrations_left(self) -> list[str]:
        """Names of what the schema lacks."""
        async with acquired(await self._pool.get()) as connection:
            with mapped_errors():
                return [migration.title for migration in await migrations_left(connection)]

    def alarm(self) -> str:
        """That the database has gone back, if it has."""
        return self._high_water.alarm

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
        await self._pool.close()
        await self._renewals.close()


def _nobody(_: str) -> None:
    """Whom to tell when nobody listens."""


async def _commit(connection: PooledConnection) -> None:
    with mapped_errors(commit=True):
        answer = await connection.execute("COMMIT")
    if answer != "COMMIT":  # a statement had failed, and the failure was swallowed on the way
        raise Unavailable(f"PostgreSQL: the transaction had failed already ({answer})")


async def _roll_back(connection: PooledConnection) -> None:
    try:
        with mapped_errors():
            await connection.execute("ROLLBACK", timeout=RELEASE_SECONDS)
    except Unavailable:
        pass  # the connection is gone or goes now, and the transaction with it


class LazyPool:
    """A pool that is opened by whoever needs it first."""

    def __init__(
        self, dsn: str, size_max: int, schema: str | None, greet: Greet | None = None
    ) -> None:
        self._dsn = dsn
        self._size_max = size_max
        self._schema = schema
        self._greet = greet
        self._pool: Pool | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def get(self) -> Pool:
        """The pool; Unavailable once it was closed, opened before or not."""
        async with self._opening:
            if self._closed:
                raise Unavailable("PostgreSQL: the store is closed")
            if self._pool is None:
                self._pool = await open_pool(self._dsn, self._size_max, self._schema, self._greet)
            return self._pool

    async def close(self) -> None:
        """Let what is under way end, for a short while, then cut it off."""
        self._closed = True
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
