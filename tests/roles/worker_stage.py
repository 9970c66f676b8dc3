"""A stage for worker tests: a scripted door, a clock and executors that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from tests.roles.mill import VirtualClock
from tests.simulation.loop import SimLoop
from tidemill.domain.identifiers import RunId, SessionId, Token
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import (
    Acks,
    Assignment,
    Assignments,
    Hello,
    Outcome,
    Outcomes,
    Ping,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Call, Executor, Workshop
from tidemill.worker.library import Library
from tidemill.worker.link import DoorLink
from tidemill.worker.processes import Commands
from tidemill.worker.threads import Threads
from tidemill.worker.worker import Worker

RUN = RunId("0190a0a0-0000-7000-8000-000000000001")
HEAR_SECONDS_MAX = 30.0  # a process may have to start first
Message = TypeVar("Message", bound=WorkerMessage)


def a_token(position: int = 0, epoch: int = 1) -> Token:
    return Token(RUN, position, epoch)


def an_assignment(position: int = 0, executor: str = "do", **fields: Any) -> Assignment:
    values: dict[str, Any] = {
        "token": a_token(position),
        "attempt": 1,
        "workflow": "orders",
        "task": f"task-{position}",
        "executor": executor,
        "params": b"{}",
        "inputs": b"{}",
        "run_input": b"null",
    }
    return Assignment(**(values | fields))


def a_workshop(library: Library | None = None, **fields: Any) -> Workshop:
    values: dict[str, Any] = {"threads": Threads(8), "commands": Commands()}
    return Workshop(
        clock=SystemClock(),
        entropy=SystemEntropy(),
        library=library or Library(),
        **(values | fields),
    )


class Doing(Executor):
    """Runs a coroutine function of the test."""

    def __init__(self, do: Callable[[Call], Awaitable[Any]]) -> None:
        self._do = do

    def check(self, params: Mapping[str, Any]) -> list[str]:
        return []

    async def run(self, call: Call) -> Any:
        return await self._do(call)

    async def close(self) -> None:
        """Nothing is shared."""


class Stream:
    """The scheduler's end of one stream, driven by the test."""

    def __init__(self, incoming: AsyncIterator[WorkerMessage]) -> None:
        self.heard: list[WorkerMessage] = []
        self.ended = asyncio.Event()
        self._incoming = incoming
        self._answers: asyncio.Queue[SchedulerMessage | None] = asyncio.Queue()
        self._news = asyncio.Condition()

    def say(self, message: SchedulerMessage) -> None:
        self._answers.put_nowait(message)

    def welcome(self, session: str = "s1", **fields: Any) -> None:
        self.say(Welcome(session=SessionId(session), secret="secret", **fields))

    def assign(self, *assignments: Assignment) -> None:
        self.say(Assignments(assignments))

    def acknowledge(self, *tokens: Token) -> None:
        self.say(Acks(tokens))

    def hang_up(self) -> None:
        self._answers.put_nowait(None)

    async def hear(
        self, kind: type[Message], wanted: Callable[[Message], bool] = lambda _: True
    ) -> Message:
        """The first message of this kind that the worker has sent or sends."""

        def found() -> Message | None:
            return next((m for m in self.heard if isinstance(m, kind) and wanted(m)), None)

        async with asyncio.timeout(HEAR_SECONDS_MAX), self._news:
            await self._news.wait_for(lambda: found() is not None)
        message = found()
        assert message is not None
        return message

    async def outcome(self, position: int = 0) -> Outcome:
        def about(message: Outcomes) -> list[Outcome]:
            return [o for o in message.outcomes if o.token.position == position]

        return about(await self.hear(Outcomes, lambda message: bool(about(message))))[0]

    async def hello(self) -> Hello:
        return await self.hear(Hello)

    async def listen(self) -> None:
        try:
            async for message in self._incoming:
                async with self._news:
                    self.heard.append(message)
                    self._news.notify_all()
        finally:
            self.ended.set()

    async def answers(self) -> AsyncIterator[SchedulerMessage]:
        while (message := await self._answers.get()) is not None:
            yield message

    async def ping(self) -> None:
        while True:
            await asyncio.sleep(0.02)
            self.say(Ping())


class ScriptedDoor:
    """Hands every stream to the test."""

    def __init__(self) -> None:
        self.streams: asyncio.Queue[Stream] = asyncio.Queue()
        self.pings = True

    async def attach(
        self, incoming: AsyncIterator[WorkerMessage]
    ) -> AsyncIterator[SchedulerMessage]:
        stream = Stream(incoming)
        chores = [asyncio.create_task(stream.listen())]
        if self.pings:
            chores.append(asyncio.create_task(stream.ping()))
        self.streams.put_nowait(stream)
        try:
            async for message in stream.answers():
                yield message
        finally:
            for chore in chores:
                chore.cancel()

    async def next_stream(self) -> Stream:
        async with asyncio.timeout(HEAR_SECONDS_MAX):
            return await self.streams.get()


QUICK: dict[str, Any] = {
    "ping_seconds": 0.05,
    "silence_seconds": 30.0,
    "holdings_seconds": 0.1,
    "flush_seconds": 0.02,
    "backoff_seconds": 0.01,
    "cancel_seconds": 0.1,
    "timeout_seconds": 0.1,
    "goodbye_seconds": 1.0,
    "worn_grace_seconds": 0.1,
}


class Stage:
    """A worker at work, and its door."""

    def __init__(
        self,
        executors: Mapping[str, Executor],
        config: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.door = ScriptedDoor()
        settings = replace(WorkerConfig(name="w1", slots=4, **QUICK), **(config or {}))
        self.worker = Worker(
            settings, [DoorLink(self.door)], executors, clock or SystemClock(), SystemEntropy()
        )

    async def welcome(self, **fields: Any) -> Stream:
        stream = await self.door.next_stream()
        await stream.hello()
        stream.welcome(**fields)
        return stream


@asynccontextmanager
async def on_stage(
    do: Callable[[Call], Awaitable[Any]] | Mapping[str, Executor],
    *,
    clock: Clock | None = None,
    **config: Any,
) -> AsyncIterator[tuple[Stage, asyncio.Task[Any]]]:
    """A running worker whose executor `do` is the test's own."""
    executors = do if isinstance(do, Mapping) else {"do": Doing(do)}
    stage = Stage(executors, config, clock)
    running = asyncio.create_task(stage.worker.run())
    try:
        yield stage, running
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await running


def on_virtual_time(play: Callable[[Clock], Awaitable[None]]) -> None:
    """Run a play whose time jumps instead of passing: for limits that no stall may touch."""
    loop = SimLoop(Random(1), seconds_max=1_000, steps_max=100_000)
    try:
        loop.run_until_complete(play(VirtualClock(loop)))
    finally:
        loop.abandon()
