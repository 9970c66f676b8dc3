"""An API in a process of its own, for clients to post to; nobody runs what they post."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.stage import Stage
from tests.deployment import PROGRAM, Deployment, RoleProcess
from tests.servers.process import free_port


@asynccontextmanager
async def running_api(stage: Stage) -> AsyncIterator[tuple[str, int]]:
    """`tidemill api` on PostgreSQL; on SQLite, which has one owner, `up` without workers."""
    async with stage.fresh_store() as (address, settings):
        stage.settings |= settings | {"auth": "single-user"}
        with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
            if address.dsn is not None:
                served = _beside_others(Path(name), address.dsn)
            else:
                served = _with_everything(Path(name), str(address.path))
            async with served as listening:
                host, _, port = listening.partition(":")
                yield host, int(port)


@asynccontextmanager
async def _beside_others(folder: Path, dsn: str) -> AsyncIterator[str]:
    with Deployment(folder, dsn, dsn) as roles:
        roles.migrate()
        roles.add_api().start()
        await asyncio.to_thread(roles.until_listening, roles.api_addresses[0])
        yield roles.api_addresses[0]


@asynccontextmanager
async def _with_everything(folder: Path, path: str) -> AsyncIterator[str]:
    address = f"127.0.0.1:{free_port()}"
    command = [*PROGRAM, "up", "--store", path, "--listen", address, "--workers", "0"]
    with Deployment(folder, path) as roles:
        roles.migrate()
        roles.apis.append(RoleProcess("up", [*command, "--auth", "single-user"], folder))
        roles.start()
        await asyncio.to_thread(roles.until_listening, address)
        yield address
