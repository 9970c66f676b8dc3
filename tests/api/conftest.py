"""The application in this process, over a store in memory, with real parts behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import httpx
import pytest

from tests.api.stage import JOB_TYPES, client_of, opened
from tidemill.api.app import Application, build_app
from tidemill.api.security import Security
from tidemill.api.services import Services
from tidemill.ports.store import Store
from tidemill.runtime.system import SystemClock
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.sqlite.store import SqliteStore

_schemas = count(1)


@pytest.fixture
async def sqlite_store() -> AsyncIterator[Store]:
    """SQLite in memory."""
    store = SqliteStore(":memory:", SystemClock(), threads=False)
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture
async def postgres_store(postgres_dsn: str) -> AsyncIterator[Store]:
    """A real PostgreSQL, each test in a schema of its own."""
    store = PostgresStore(postgres_dsn, schema=f"api_{next(_schemas)}")
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture
async def services(sqlite_store: Store) -> AsyncIterator[Services]:
    """Everything that handlers work with, over SQLite in memory."""
    async with opened(sqlite_store, job_types=JOB_TYPES) as services:
        yield services


@pytest.fixture
async def postgres_services(postgres_store: Store) -> AsyncIterator[Services]:
    """The same over PostgreSQL."""
    async with opened(postgres_store, job_types=JOB_TYPES) as services:
        yield services


@pytest.fixture
def app(services: Services) -> Application:
    """The whole application, for a single user."""
    return build_app(services, Security())


@pytest.fixture
async def client(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    """Talks to the application without a network."""
    async with client_of(app) as client:
        yield client
