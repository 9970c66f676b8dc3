"""Fresh stores with full durability, and the settings that they say they run with."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

import asyncpg

from bench.results import Settings, StoreName
from tests.servers import postgres_server
from tidemill.runtime.addresses import StoreAddress
from tidemill.stores.sqlite.connection import connect_writer

# The server is as it comes, but for the socket and the number of connections.
POSTGRES_OPTIONS = {"listen_addresses": "", "max_connections": "60", "log_min_messages": "fatal"}
POSTGRES_RECORDED = (
    "server_version",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
)
POSTGRES_DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
SQLITE_RECORDED = ("journal_mode", "synchronous", "cache_size", "page_size")
SQLITE_DURABLE = {"journal_mode": "wal", "synchronous": 2}

FreshStore: TypeAlias = Callable[[], AbstractAsyncContextManager[tuple[StoreAddress, Settings]]]


@contextmanager
def store_source(name: StoreName) -> Iterator[FreshStore]:
    """Makes empty stores of one kind, for as long as the server behind them runs."""
    if name == "sqlite":
        yield _fresh_file
        return
    with postgres_server(POSTGRES_OPTIONS) as dsn:
        numbers = count(1)
        yield lambda: _fresh_database(dsn, f"bench_{next(numbers)}")


@asynccontextmanager
async def _fresh_file() -> AsyncIterator[tuple[StoreAddress, Settings]]:
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
        path = Path(folder) / "tidemill.db"
        yield StoreAddress(path=path), _sqlite_settings(path)


def _sqlite_settings(path: Path) -> Settings:
    """As the connection of the product has them, read back."""
    connection = connect_writer(str(path))
    try:
        rows = {name: connection.execute(f"PRAGMA {name}").fetchone() for name in SQLITE_RECORDED}
    finally:
        connection.close()
    return _checked({name: row[0] for name, row in rows.items()}, SQLITE_DURABLE)


@asynccontextmanager
async def _fresh_database(dsn: str, name: str) -> AsyncIterator[tuple[StoreAddress, Settings]]:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        settings = {one: await connection.fetchval(f"SHOW {one}") for one in POSTGRES_RECORDED}
    finally:
        await connection.close()
    address = dsn.replace("/postgres?", f"/{name}?")
    try:
        yield StoreAddress(dsn=address), _checked(settings, POSTGRES_DURABLE)
    finally:
        await _drop(dsn, name)


async def _drop(dsn: str, name: str) -> None:
    """What is left of one measurement would be vacuumed and written out during the next."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


def _checked(settings: Settings, durable: Settings) -> Settings:
    wrong = {name: settings[name] for name, value in durable.items() if settings[name] != value}
    if wrong:
        raise RuntimeError(f"figures without durability are worth nothing: {wrong}")
    return settings
