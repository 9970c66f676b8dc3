"""Tidemill with its roles apart: processes over TCP on one PostgreSQL, with product defaults."""

from __future__ import annotations

import asyncio
import math
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.stage import Stage
from tests.deployment import Deployment, RoleProcess
from tidemill.domain.run import RUN_ENDED, RunState
from tidemill.domain.workflow import Workflow
from tidemill.engine.runs import StartRequest, start
from tidemill.ports.queries import RunQuery
from tidemill.runtime.system import SystemEntropy
from tidemill.runtime.wiring import open_bus
from tidemill.stores.postgres.store import PostgresStore

LOOK_SECONDS = 0.005
WAIT_SECONDS_MAX = 300.0
OPEN = tuple(sorted(set(RunState) - RUN_ENDED))


class Apart:
    """Role processes, and a client that starts runs."""

    def __init__(self, roles: Deployment, folder: Path) -> None:
        self.roles = roles
        self.folder = folder
        self.store = PostgresStore(roles.store)
        self._bus = open_bus(roles.bus)
        self._entropy = SystemEntropy()

    async def close(self) -> None:
        """Let go of connections."""
        await self._bus.close()
        await self.store.close()

    async def begin(self, workflow: Workflow, count: int) -> None:
        """Start many runs of one workflow in one call."""
        requests = [StartRequest(workflow=workflow)] * count
        await start(self.store, self._bus, self._entropy, requests)

    async def all_ended(self) -> None:
        """Wait until no run is open."""
        query = RunQuery(namespace="default", states=OPEN, limit=1)
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while await self.store.reader.runs(query):  # noqa: ASYNC110 - nobody signals this
                await asyncio.sleep(LOOK_SECONDS)

    async def until_listening(self, scheduler: RoleProcess) -> None:
        """Wait for a scheduler to take connections."""
        address = self.roles.addresses[self.roles.schedulers.index(scheduler)]
        host, _, port = address.partition(":")
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while not _connects(host, int(port)):  # noqa: ASYNC110 - nobody signals this
                await asyncio.sleep(LOOK_SECONDS)

    async def until_connected(self, worker: RoleProcess) -> None:
        """Wait for a worker's latest process to have a session."""
        since = time.time() - worker.age
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while not await self._is_connected(worker.name, since):  # noqa: ASYNC110 - nobody signals this
                await asyncio.sleep(LOOK_SECONDS)

    async def _is_connected(self, name: str, since: float) -> bool:
        sessions = await self.store.reader.sessions("default")
        return any(one.worker == name and one.opened_at / 1e6 >= since for one in sessions)


@asynccontextmanager
async def running_apart(
    stage: Stage, schedulers: int, workers: int, options: Sequence[str] = ()
) -> AsyncIterator[Apart]:
    """Started roles on an empty database; the bus is PostgreSQL itself."""
    async with stage.fresh_store() as (address, settings):
        assert address.dsn is not None
        stage.settings |= settings | {"bus": "postgresql"}
        with (
            tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
            Deployment(Path(name), address.dsn, address.dsn) as roles,
        ):
            roles.migrate()
            apart = Apart(roles, Path(name))
            try:
                await _start(apart, schedulers, workers, options)
                yield apart
            finally:
                await apart.close()


async def _start(apart: Apart, schedulers: int, workers: int, options: Sequence[str]) -> None:
    for _ in range(schedulers):
        apart.roles.add_scheduler().start()
    for scheduler in apart.roles.schedulers:
        await apart.until_listening(scheduler)
    for _ in range(workers):
        apart.roles.add_worker(*options).start()
    for worker in apart.roles.workers:
        await apart.until_connected(worker)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so many percent of the values do not exceed."""
    place = math.ceil(len(values) * share / 100) - 1
    return sorted(values)[max(0, place)]


def _connects(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
