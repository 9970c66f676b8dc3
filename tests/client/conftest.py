"""A client over the application in this process, with a scheduler and a worker behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.api.crew import Crew, at_work
from tests.api.stage import JOB_TYPES, opened
from tidemill.api.app import Application, build_app
from tidemill.api.security import Security
from tidemill.api.services import Services
from tidemill.client import Client
from tidemill.client.in_process import AppTransport
from tidemill.runtime.system import SystemClock
from tidemill.stores.sqlite.store import SqliteStore


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    """Everything that handlers work with, over SQLite in memory."""
    store = SqliteStore(":memory:", SystemClock(), threads=False)
    await store.migrate()
    async with opened(store, job_types=JOB_TYPES) as services:
        yield services
    await store.close()


@pytest.fixture
def app(services: Services) -> Application:
    """The whole application, for a single user."""
    return build_app(services, Security())


@pytest.fixture
async def client(app: Application) -> AsyncIterator[Client]:
    """Speaks to the application without a network."""
    async with Client("http://inside", transport=AppTransport(app)) as client:
        yield client


@pytest.fixture
async def crew(services: Services) -> AsyncIterator[Crew]:
    """A scheduler with one worker, and a relay."""
    async with at_work(services) as crew:
        yield crew
