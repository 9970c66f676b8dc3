"""A house on SQLite in memory, and one on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from tests.identity.stage import Clock, House, opened_house
from tidemill.ports.store import Store
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.sqlite.store import SqliteStore

_schemas = count(1)


@pytest.fixture
def clock() -> Clock:
    """The clock of the house."""
    return Clock()


@pytest.fixture
async def memory_store(clock: Clock) -> AsyncIterator[Store]:
    """SQLite in memory."""
    store = SqliteStore(":memory:", clock, threads=False)
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture
async def postgres_store(postgres_dsn: str) -> AsyncIterator[Store]:
    """A schema of its own in a real PostgreSQL."""
    store = PostgresStore(postgres_dsn, schema=f"identity_{next(_schemas)}")
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture(params=["memory_store", "postgres_store"])
def any_store(request: pytest.FixtureRequest) -> Store:
    """Each kind of store in turn."""
    chosen: Store = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
async def house(memory_store: Store, clock: Clock) -> AsyncIterator[House]:
    """The application with its first administrator."""
    async with opened_house(memory_store, clock) as made:
        await made.bootstrap()
        yield made


@pytest.fixture
async def any_house(any_store: Store, clock: Clock) -> AsyncIterator[House]:
    """The same on each kind of store."""
    async with opened_house(any_store, clock) as made:
        await made.bootstrap()
        yield made
