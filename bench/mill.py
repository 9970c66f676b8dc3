"""Tidemill as its users have it: embedded, with product defaults and real worker processes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.task_run import TaskRun
from tidemill.domain.workflow import Workflow
from tidemill.engine.runs import StartRequest, start
from tidemill.ports.queries import RunQuery
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.settings import Settings

LOOK_SECONDS = 0.005
LOOK_SECONDS_MAX = 0.02  # a look takes time from those who work: at long runs they are fewer
TASKS_PER_SECOND_MAX = 20_000  # nobody looks before so many could be over
LARGE = 1_000
RUN_SECONDS_MAX = 900.0
UNHAPPY = tuple(sorted(RUN_ENDED - {RunState.SUCCEEDED}))
OPEN = tuple(sorted(set(RunState) - RUN_ENDED))


@asynccontextmanager
async def running_mill(
    address: StoreAddress, imports: Sequence[str] = (), bus_url: str = "memory:"
) -> AsyncIterator[Mill]:
    """A started system with a worker that has connected."""
    settings = Settings(store=address, bus=bus_url, imports=tuple(imports))
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

    def cpu_seconds(self) -> dict[str, float]:
        """Processor time since their start of this process, client included, and of the workers."""
        workers = sum(_cpu_seconds(pid) for pid in self.worker_pids)
        return {"serving": time.process_time(), "workers": workers}

    async def seconds_of(self, workflow: Workflow) -> float:
        """From the wish to the end of one run."""
        begin = time.perf_counter()
        pause = LOOK_SECONDS if len(workflow.tasks) < LARGE else LOOK_SECONDS_MAX
        await self._until_succeeded(workflow, pause)
        return time.perf_counter() - begin

    async def run_of(self, workflow: Workflow) -> tuple[Run, list[TaskRun]]:
        """One run and its tasks in order of position, as they are stored after its end."""
        reader = self._system.store.reader
        run_id = await self._until_succeeded(workflow, LOOK_SECONDS_MAX)
        tasks = await reader.tasks("default", run_id, -1, len(workflow.tasks))
        return await reader.run("default", run_id), tasks

    async def begin(self, workflow: Workflow, count: int) -> None:
        """Start many runs of one workflow in one call."""
        await self.submit([StartRequest(workflow=workflow)] * count)

    async def submit(self, requests: Sequence[StartRequest]) -> None:
        """Start all that is asked for in one call."""
        system = self._system
        await start(system.store, system.bus, system.entropy, requests)

    async def all_ended(self, tasks: int = 0) -> None:
        """Wait until no run is open, of so many tasks altogether, then see that none has failed."""
        await asyncio.sleep(tasks / TASKS_PER_SECOND_MAX)
        async with asyncio.timeout(RUN_SECONDS_MAX):
            while found := await self._find(OPEN):
                if found[0].quarantine is not None:
                    raise RuntimeError(f"run {found[0].id} is put aside: {found[0].quarantine}")
                await asyncio.sleep(LOOK_SECONDS_MAX)
        if failed := await self._find(UNHAPPY):
            raise RuntimeError(f"run {failed[0].id} is {failed[0].state}: {failed[0].reason}")

    async def _find(self, states: tuple[RunState, ...]) -> list[Run]:
        self._system.check()
        return await self._system.store.reader.runs(
            RunQuery(namespace="default", states=states, limit=1)
        )

    async def _until_succeeded(self, workflow: Workflow, pause: float) -> RunId:
        run_id = (await self._system.start(workflow, {})).run_id
        async with asyncio.timeout(RUN_SECONDS_MAX):
            while not await self._has_succeeded(run_id):  # noqa: ASYNC110
                await asyncio.sleep(pause)
        return run_id

    async def _has_succeeded(self, run_id: RunId) -> bool:
        self._system.check()
        run = await self._system.store.reader.run("default", run_id)
        if run.quarantine is not None or run.state in UNHAPPY:
            raise RuntimeError(f"run {run_id} is {run.state}: {run.quarantine or run.reason}")
        return run.state is RunState.SUCCEEDED


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
