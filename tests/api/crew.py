"""A scheduler, a relay and a worker that does as it is told, beside an application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from tests.roles.mill import Stream
from tidemill.api.services import Services
from tidemill.domain.events import Failed, Succeeded, WorkerReport
from tidemill.domain.task_run import TaskError
from tidemill.domain.workflow import OUTPUT_ID
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.protocol.messages import Assignment, Assignments, Hello
from tidemill.runtime.system import SystemEntropy
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler

EXECUTORS = ("echo", "boom", "hold", "default", "compute", "noop")


def a_definition(name: str = "orders", **fields: Any) -> dict[str, Any]:
    """Two tasks in a row that succeed."""
    tasks = [
        {"id": "pick", "executor": "echo", "params": {"value": 1}},
        {"id": "ship", "executor": "echo", "params": {"value": 2}, "depends_on": ["pick"]},
    ]
    return {"name": name, "tasks": tasks, **fields}


def one_task(executor: str, name: str = "single", **task: Any) -> dict[str, Any]:
    """A workflow of one task."""
    return {"name": name, "tasks": [{"id": "only", "executor": executor, **task}]}


class Crew:
    """Plays the worker: `echo` returns its value, `boom` fails for good, `hold` waits."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.released = asyncio.Event()
        self._scheduler = scheduler

    async def work(self) -> None:
        """One session after another: on a busy machine one may expire."""
        while True:
            stream = Stream(self._scheduler, Hello(worker="ada", slots=10, executors=EXECUTORS))
            await stream.open()
            while not stream.over.is_set():
                with suppress(TimeoutError):
                    await self._work(stream, await stream.receive(Assignments, 0.5))

    async def _work(self, stream: Stream, message: Assignments) -> None:
        for assignment in message.assignments:
            if assignment.executor == "hold":
                await self.released.wait()
            async with asyncio.timeout(2):
                await stream.report((assignment.token, _report(assignment)))


def _report(assignment: Assignment) -> WorkerReport:
    epoch = assignment.token.epoch
    if assignment.executor == "boom":
        error = TaskError(type="Boom", message="it broke", traceback="line 1")
        return Failed(epoch=epoch, error=error, final=True)
    if assignment.executor == OUTPUT_ID:
        read = {name: msgspec.json.decode(data) for name, data in assignment.results.items()}
        return Succeeded(epoch, msgspec.json.encode(read))
    params = msgspec.json.decode(assignment.params)
    return Succeeded(epoch, msgspec.json.encode(params.get("value")))


@asynccontextmanager
async def at_work(services: Services, *, relay: bool = True) -> AsyncIterator[Crew]:
    """A scheduler with one worker, and a relay, until the block ends."""
    scheduler = Scheduler(
        name="scheduler",
        store=services.store,
        bus=services.bus,
        clock=services.clock,
        entropy=SystemEntropy(),
        config=SchedulerConfig(),
    )
    crew = Crew(scheduler)
    duties = [asyncio.create_task(scheduler.run()), asyncio.create_task(crew.work())]
    if relay:
        config = RelayConfig(poll_seconds=0.05, pause_seconds=0.001)
        carrier = Relay(
            name="relay",
            store=services.store,
            bus=services.bus,
            clock=services.clock,
            config=config,
        )
        duties.append(asyncio.create_task(carrier.run()))
    try:
        yield crew
    finally:
        for task in duties:
            task.cancel()
        await asyncio.gather(*duties, return_exceptions=True)
