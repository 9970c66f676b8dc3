"""What tests of the HTTP API stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tidemill.api.app import Application
from tidemill.api.opening import make_services, serving
from tidemill.api.services import Services
from tidemill.buses.memory import MemoryBus
from tidemill.ports.store import Store
from tidemill.runtime.system import SystemClock, SystemEntropy

BASE_URL = "http://127.0.0.1:8080"
JOB_TYPES = ("default", "compute", "notify", "transform", "flaky", "noop", "sleep")


@asynccontextmanager
async def opened(store: Store, *, job_types: tuple[str, ...] = ()) -> AsyncIterator[Services]:
    """Services over a store, with what runs beside requests."""
    bus = MemoryBus()
    try:
        made = make_services(store, bus, SystemClock(), SystemEntropy(), job_types)
        async with serving(made):
            yield made
    finally:
        await bus.close()


def client_of(app: Application, **headers: str) -> httpx.AsyncClient:
    """A client of the application without a network; its errors are answers, not exceptions."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers)
