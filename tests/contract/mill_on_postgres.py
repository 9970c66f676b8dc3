"""Real schedulers on a real PostgreSQL, with workers that the test plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from tests.roles.mill import Stream
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import Run
from tidemill.domain.workflow import Workflow
from tidemill.engine import runs
from tidemill.protocol.messages import Assignments, Hello
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.stores.postgres.store import PostgresStore

LOOK_SECONDS = 0.05
START_TRIES_MAX = 10


class LiveMill:
    """Schedulers at work on one store, each with a worker that succeeds at once."""

    def __init__(self, store: PostgresStore, names: Sequence[str], config: SchedulerConfig) -> None:
        self.store = store
        self.bus = MemoryBus()
        self.entropy = SystemEntropy()
        self.schedulers = [
            Scheduler(
                name=name,
                store=store,
                bus=self.bus,
                clock=SystemClock(),
                entropy=self.entropy,
                config=config,
            )
            for name in names
        ]
        self.duties: list[asyncio.Task[None]] = []
        self.done = 0  # tasks that workers have reported

    async def start(self, workflow: Workflow, count: int) -> list[RunId]:
        """Start so many runs, as a client does that tries again."""
        requests = [runs.StartRequest(workflow=workflow)] * count
        for _ in range(START_TRIES_MAX):
            with suppress(Unavailable):
                started = await runs.start(self.store, self.bus, self.entropy, requests)
                return [one.run_id for one in started]
        raise Unavailable("the runs could not be started")

    async def cancel(self, run_id: RunId) -> None:
        """Cancel a run, however often it takes."""
        while True:
            with suppress(Unavailable):
                await runs.cancel(self.store, self.bus, "default", run_id)
                return

    async def all_ended(self, run_ids: Sequence[RunId], seconds_max: float = 30) -> list[Run]:
        """The runs, once every one of them has ended."""
        async with asyncio.timeout(seconds_max):
            return [await self._ended(run_id) for run_id in run_ids]

    async def _ended(self, run_id: RunId) -> Run:
        while True:
            with suppress(Unavailable):
                run = await self.store.reader.run("default", run_id)
                if run.ended_at is not None:
                    return run
            await asyncio.sleep(LOOK_SECONDS)

    async def work(self, scheduler: Scheduler, slots: int) -> None:
        """A worker whose tasks succeed at once; it comes back when it is cut off."""
        while True:
            stream = Stream(scheduler, Hello(worker=f"of {id(scheduler)}", slots=slots))
            await stream.open()
            answering = asyncio.create_task(self._answer(stream))
            await stream.over.wait()
            answering.cancel()
            stream.fall_silent()

    async def _answer(self, stream: Stream) -> None:
        while True:
            batch = (await stream.receive(Assignments, 3_600)).assignments
            self.done += len(batch)
            await stream.succeed(*(one.token for one in batch))

    @property
    def alive(self) -> bool:
        """Whether every duty goes on."""
        return not any(duty.done() for duty in self.duties)


@asynccontextmanager
async def live_mill(
    store: PostgresStore,
    names: Sequence[str] = ("one",),
    *,
    slots: int = 8,
    config: SchedulerConfig | None = None,
) -> AsyncIterator[LiveMill]:
    """A mill at work, until the block ends."""
    mill = LiveMill(store, names, config or SchedulerConfig())
    mill.duties = [asyncio.create_task(one.run()) for one in mill.schedulers]
    mill.duties += [asyncio.create_task(mill.work(one, slots)) for one in mill.schedulers]
    try:
        yield mill
    finally:
        for duty in mill.duties:
            duty.cancel()
        await asyncio.wait(mill.duties)
