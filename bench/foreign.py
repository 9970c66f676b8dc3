"""A foreign transaction that holds its snapshot, such as a backup or a forgotten console."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tidemill.runtime.addresses import StoreAddress

SEEN = "SELECT count(*) FROM session"


@asynccontextmanager
async def foreign_snapshot(address: StoreAddress) -> AsyncIterator[None]:
    """Nothing that dies meanwhile can be cleared away: rows in PostgreSQL, the log of SQLite."""
    if address.path is None:
        connection = await asyncpg.connect(address.dsn)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await connection.fetchval(SEEN)
                yield
        finally:
            await connection.close()
    else:
        raw = sqlite3.connect(address.path, isolation_level=None)
        try:
            raw.execute("BEGIN")
            raw.execute(SEEN).fetchall()
            yield
        finally:
            raw.close()
