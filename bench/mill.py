"""Tidemill as its users have it: embedded, with product defaults and real worker processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.workflow import Workflow
from tidemill.engine.runs import StartRequest, start
from tidemill.ports.queries import RunQuery
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.settings import Settings

LOOK_SECONDS = 0.005
RUN_SECONDS_MAX = 900.0
UNHAPPY = tuple(sorted(RUN_ENDED - {RunState.SUCCEEDED}))
OPEN = tuple(sorted(set(RunState) - RUN_ENDED))


@asynccontextmanager
async def running_mill(address: StoreAddress, imports: Sequence[str] = ()) -> AsyncIterator[Mill]:
    """A started system with a worker that has connected."""
    settings = Settings(store=address, bus="memory:", imports=tuple(imports))
    async with Embedded(settings) as system:
        await system.workers_ready()
        yield Mill(system)


class Mill:
    """Starts runs and sees them end."""

    def __init__(self, system: Embedded) -> None:
        self._system = system

    @property
    def worker_pids(self) -> list[int]:
        """The worker processes that run right now."""
        return self._system.worker_pids

    @property
    def settings(self) -> dict[str, int]:
        """What the product was started with."""
        return {"workers": self._system.settings.workers, "slots": self._system.settings.slots}

    async def seconds_of(self, workflow: Workflow) -> float:
        """From the wish to the end of one run."""
        begin = time.perf_counter()
        await self._until_succeeded((await self._system.start(workflow, {})).run_id)
        return time.perf_counter() - begin

    async def begin(self, workflow: Workflow, count: int) -> None:
        """Start many runs of one workflow in one call."""
        system = self._system
        requests = [StartRequest(workflow=workflow)] * count
        await start(system.store, system.bus, system.entropy, requests)

    async def all_ended(self) -> None:
        """Wait until no run is open, then see that none has failed."""
        async with asyncio.timeout(RUN_SECONDS_MAX):
            while await self._find(OPEN):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
        if failed := await self._find(UNHAPPY):
            raise RuntimeError(f"run {failed[0].id} is {failed[0].state}: {failed[0].reason}")

    async def _find(self, states: tuple[RunState, ...]) -> list[Run]:
        self._system.check()
        return await self._system.store.reader.runs(
            RunQuery(namespace="default", states=states, limit=1)
        )

    async def _until_succeeded(self, run_id: RunId) -> None:
        async with asyncio.timeout(RUN_SECONDS_MAX):
            while not await self._has_succeeded(run_id):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)

    async def _has_succeeded(self, run_id: RunId) -> bool:
        self._system.check()
        run = await self._system.store.reader.run("default", run_id)
        if run.quarantine is not None or run.state in UNHAPPY:
            raise RuntimeError(f"run {run_id} is {run.state}: {run.quarantine or run.reason}")
        return run.state is RunState.SUCCEEDED
