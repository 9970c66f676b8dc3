"""Named queries on PostgreSQL, inside a transaction and outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

from tidemill.domain.errors import Unavailable
from tidemill.stores.named_queries import load_queries
from tidemill.stores.postgres.connection import (
    ACQUIRE_SECONDS,
    RELEASE_SECONDS,
    Pool,
    PooledConnection,
    mapped_errors,
)
from tidemill.stores.statements import Row

QUERIES: Mapping[str, str] = load_queries("tidemill.stores.postgres")


class ConnectionStatements:
    """Statements on one connection, all in the transaction that is open on it."""

    def __init__(self, connection: PooledConnection) -> None:
        self._connection = connection

    async def fetch(self, name: str, *values: object) -> list[Row]:
        """Rows of a query."""
        with mapped_errors():
            return cast(list[Row], await self._connection.fetch(QUERIES[name], *values))

    async def fetch_batch(self, name: str, batch: Sequence[Row], *values: object) -> list[Row]:
        """Rows of a query for a batch, which travels as one array per column."""
        return await self.fetch(name, *columns(batch), *values) if batch else []

    async def execute(self, name: str, *values: object) -> int:
        """Rows touched by a command."""
        with mapped_errors():
            status = await self._connection.execute(QUERIES[name], *values)
        return int(status.rpartition(" ")[2])

    async def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Run a command once, for all rows."""
        if batch:
            await self.execute(name, *columns(batch))


class PoolStatements:
    """Statements outside any transaction, each on a connection of its own."""

    def __init__(self, pool: Callable[[], Awaitable[Pool]]) -> None:
        self._pool = pool

    async def fetch(self, name: str, *values: object) -> list[Row]:
        """Rows of a query."""
        async with acquired(await self._pool()) as connection:
            return await ConnectionStatements(connection).fetch(name, *values)

    async def fetch_batch(self, name: str, batch: Sequence[Row], *values: object) -> list[Row]:
        """Rows of a query for a batch."""
        return await self.fetch(name, *columns(batch), *values) if batch else []

    async def execute(self, name: str, *values: object) -> int:
        """Not here."""
        raise AssertionError(f"{name} writes: it belongs into a transaction")

    async def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Not here."""
        raise AssertionError(f"{name} writes: it belongs into a transaction")


@asynccontextmanager
async def acquired(pool: Pool) -> AsyncIterator[PooledConnection]:
    """A connection of the pool, for a while."""
    with mapped_errors():
        connection = await pool.acquire(timeout=ACQUIRE_SECONDS)
    try:
        yield connection
    finally:
        await _release(pool, connection)


async def _release(pool: Pool, connection: PooledConnection) -> None:
    """Give a connection back; one that does not come to rest in time is cut off by the pool.

    That is no error of whoever had it: it must not hide how their work ended, nor that they were
    cancelled.
    """
    try:
        with mapped_errors():
            await pool.release(connection, timeout=RELEASE_SECONDS)
    except Unavailable:
        return


def columns(batch: Sequence[Row]) -> list[list[object]]:
    """One list per column."""
    return [list(column) for column in zip(*batch, strict=True)]
