"""A real scheduler behind a real gRPC address, and a stranger who sends it raw bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import grpc.aio
from msgspec.structs import replace

from tidemill.buses.memory import MemoryBus
from tidemill.domain.identifiers import RunId, Token
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.gateway.query import query_handler
from tidemill.gateway.server import GatewayServer
from tidemill.ports.store import Store
from tidemill.protocol.codec import ATTACH, decode_scheduler_message, encode_worker_message
from tidemill.protocol.messages import (
    Assignment,
    Assignments,
    Hello,
    Outcome,
    Outcomes,
    SchedulerMessage,
    WorkerMessage,
)
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.stores.sqlite.store import SqliteStore

Message = TypeVar("Message", bound=SchedulerMessage)


@dataclass
class Mill:
    """A scheduler at work on a store in memory, and where it can be reached."""

    scheduler: Scheduler
    store: Store
    bus: MemoryBus
    address: str

    async def start(self, *tasks: TaskSpec, name: str = "w", **fields: Any) -> RunId:
        """Start a run of these tasks."""
        request = runs.StartRequest(workflow=Workflow(name=name, tasks=tasks), **fields)
        (started,) = await runs.start(self.store, self.bus, SystemEntropy(), [request])
        return started.run_id

    async def task(self, run_id: RunId, position: int = 0) -> TaskRun:
        """One task as it is stored."""
        (task,) = await self.store.reader.tasks("default", run_id, position - 1, 1)
        return task

    async def ended(self, run_id: RunId) -> Run:
        """The run, once it has ended."""
        for _ in range(500):
            run = await self.store.reader.run("default", run_id)
            if run.ended_at is not None:
                return run
            await asyncio.sleep(0.02)
        raise AssertionError(f"run {run_id} has not ended")

    def sessions(self) -> int:
        """How many workers are attached."""
        return len(self.scheduler.desk.sessions)


@asynccontextmanager
async def a_mill(
    config: SchedulerConfig | None = None,
    address: str = "127.0.0.1:0",
    store: Store | None = None,
    services: Sequence[Any] = (),
    **gateway: Any,
) -> AsyncIterator[Mill]:
    """A mill behind `address`, in the clear unless `gateway` says otherwise."""
    clock = SystemClock()
    store = store or SqliteStore(":memory:", clock)
    await store.migrate()
    bus = MemoryBus()
    scheduler = Scheduler(
        name="first",
        store=store,
        bus=bus,
        clock=clock,
        entropy=SystemEntropy(),
        config=config or SchedulerConfig(),
    )
    duties = asyncio.create_task(scheduler.run())
    handlers = [query_handler(store, clock), *services]
    server = GatewayServer(scheduler, address, handlers=handlers, **gateway)
    await server.start()
    try:
        yield Mill(scheduler, store, bus, server.address)
    finally:
        await server.stop(0)
        duties.cancel()
        with suppress(asyncio.CancelledError):
            await duties
        await store.close()


class Stranger:
    """A worker's end of a stream in the hands of the test: bytes out, messages in."""

    def __init__(self, address: str, credential: str = "") -> None:
        self._channel = grpc.aio.insecure_channel(
            address, options=[("grpc.max_send_message_length", -1)]
        )
        shown = [("authorization", f"Bearer {credential}")] if credential else []
        self._call = self._channel.stream_stream(ATTACH, None, None)(None, metadata=shown)

    async def say(self, message: WorkerMessage) -> None:
        """Send one message."""
        await self._call.write(encode_worker_message(message))

    async def send(self, data: bytes) -> None:
        """Send whatever it is."""
        await self._call.write(data)

    async def hear(
        self, kind: type[Message], wanted: Callable[[Message], bool] = lambda _: True
    ) -> Message:
        """The next message of a kind; others are passed over."""
        async with asyncio.timeout(10):
            while True:
                data = await self._call.read()
                assert isinstance(data, bytes), await self.end()
                message = decode_scheduler_message(data)
                if isinstance(message, kind) and wanted(message):
                    return message

    async def assignments(self, count: int) -> list[Assignment]:
        """The next so many tasks given."""
        found: list[Assignment] = []
        while len(found) < count:
            found += (await self.hear(Assignments)).assignments
        return found

    async def tokens(self, count: int) -> list[Token]:
        """Their tokens, in order of position."""
        return sorted(assignment.token for assignment in await self.assignments(count))

    async def token(self) -> Token:
        """The token of the next task given."""
        return (await self.tokens(1))[0]

    async def report(self, token: Token, report: Any) -> None:
        """Send one outcome."""
        await self.say(Outcomes((Outcome(token, report),)))

    async def end(self) -> tuple[grpc.StatusCode, str]:
        """How the stream ended."""
        async with asyncio.timeout(10):
            return await self._call.code(), await self._call.details() or ""

    async def close(self) -> None:
        """Hang up."""
        await self._channel.close(None)


@asynccontextmanager
async def a_stranger(mill: Mill, credential: str = "", **hello: Any) -> AsyncIterator[Stranger]:
    """A stream on which Hello has been said."""
    stranger = Stranger(mill.address, credential)
    await stranger.say(replace(Hello(worker="stranger", slots=4), **hello))
    try:
        yield stranger
    finally:
        await stranger.close()
