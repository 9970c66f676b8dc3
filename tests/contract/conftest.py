"""Every store in turn: a test that asks for `store` is part of the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.builders import NOON
from tests.contract.quick_schema import make_schema
from tests.patience import patient_connections
from tidemill.domain.identifiers import Moment
from tidemill.ports.store import Store
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.sqlite.store import SqliteStore

_schemas = count(1)


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.moment: Moment = NOON

    def now(self) -> Moment:
        """The moment it was set to."""
        return self.moment

    def monotonic(self) -> float:
        """The same, in seconds."""
        return self.moment / 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Move instead of waiting."""
        self.moment += round(seconds * 1_000_000)


@pytest.fixture
def clock() -> ManualClock:
    """The clock of the SQLite stores."""
    return ManualClock()


@pytest.fixture
async def sqlite_memory(clock: ManualClock) -> AsyncIterator[SqliteStore]:
    """SQLite as the simulation uses it: in memory, without threads."""
    store = SqliteStore(":memory:", clock, threads=False)
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture
async def sqlite_file(clock: ManualClock, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """SQLite as `tidemill run` uses it."""
    store = SqliteStore(str(tmp_path / "tidemill.db"), clock)
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture
async def postgres(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    """A real PostgreSQL, each test in a schema of its own."""
    schema = f"test_{next(_schemas)}"
    await make_schema(postgres_dsn, schema)
    store = PostgresStore(postgres_dsn, schema=schema)
    yield store
    await store.close()


@pytest.fixture
def patience() -> Iterator[None]:
    """For `usefixtures`, which come first: stores that wait for locks as long as it takes."""
    with patient_connections():
        yield


@pytest.fixture(params=["sqlite_memory", "sqlite_file", "postgres"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each store; there is no fixture that a test could ask which one it has."""
    chosen: Store = request.getfixturevalue(request.param)
    return chosen
