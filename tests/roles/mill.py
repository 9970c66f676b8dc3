"""A mill for tests: schedulers over a real store in memory, on virtual time.

Workers are played by the test itself, which speaks the worker protocol through a Stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tests.simulation.loop import SimLoop
from tidemill.buses.memory import MemoryBus
from tidemill.domain.events import CancelConfirmed, Failed, Succeeded, WorkerReport
from tidemill.domain.identifiers import SECOND, Moment, RunId, SessionId, TaskKey, Token
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskError, TaskRun
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.protocol.messages import (
    Acks,
    Assignment,
    Assignments,
    Cancels,
    Goodbye,
    Hello,
    Outcome,
    Outcomes,
    Ping,
    Refused,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.stores.sqlite.store import SqliteStore

M = TypeVar("M", bound=SchedulerMessage)
NOON: Moment = 1_800_000_000 * SECOND


class VirtualClock:
    """The time of the loop, which jumps instead of waiting."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now(self) -> Moment:
        return NOON + round(self._loop.time() * SECOND)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SeededEntropy:
    """Chance that repeats itself."""

    def __init__(self) -> None:
        self._random = Random(7)
        self._count = 0

    def fraction(self) -> float:
        return self._random.random()

    def run_id(self) -> RunId:
        self._count += 1
        return RunId(f"01980000-0000-7000-8000-{self._count:012x}")

    def session_id(self) -> SessionId:
        self._count += 1
        return SessionId(f"session-{self._count}")

    def secret(self) -> str:
        return f"secret-{self._random.random()}"


class PoliteStore(SqliteStore):
    """Without threads a transaction never waits: let the others have a word in between."""

    async def take_turn(self) -> None:
        await asyncio.sleep(0)
        await super().take_turn()


class Mill:
    """A store, a bus and a scheduler, or several."""

    def __init__(self, config: SchedulerConfig | None = None) -> None:
        self.loop = SimLoop(Random(1), seconds_max=100_000, steps_max=5_000_000)
        self.clock = VirtualClock(self.loop)
        self.entropy = SeededEntropy()
        self.store = PoliteStore(":memory:", self.clock, threads=False)
        self.bus = MemoryBus()
        self.config = config or SchedulerConfig()
        self.scheduler = self.a_scheduler("first")

    def a_scheduler(self, name: str) -> Scheduler:
        return Scheduler(
            name=name,
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            entropy=self.entropy,
            config=self.config,
        )

    async def start(self, *tasks: TaskSpec, input: Any = None, **fields: Any) -> RunId:  # noqa: A002
        workflow = Workflow(name="w", tasks=tasks, **fields)
        request = runs.StartRequest(workflow=workflow, input=input or {})
        (started,) = await runs.start(self.store, self.bus, self.entropy, [request])
        return started.run_id

    async def run(self, run_id: RunId) -> Run:
        return await self.store.reader.run("default", run_id)

    async def task(self, run_id: RunId, position: int = 0) -> TaskRun:
        (task,) = await self.store.reader.tasks("default", run_id, position - 1, 1)
        return task

    async def states(self, run_id: RunId) -> list[str]:
        tasks = await self.store.reader.tasks("default", run_id, -1, 100_000)
        return [task.state.value for task in tasks]

    async def ended(self, run_id: RunId, seconds_max: float = 600) -> Run:
        async with asyncio.timeout(seconds_max):
            while (run := await self.run(run_id)).ended_at is None:
                await self.clock.sleep(0.05)
        return run

    def worker(self, scheduler: Scheduler | None = None, **hello: Any) -> Stream:
        plain = Hello(worker="w", slots=10)
        return Stream(scheduler or self.scheduler, replace(plain, **hello))

    async def result(self, run_id: RunId, position: int) -> Any:
        key = TaskKey(run_id, position)
        results = await self.store.payloads.results([key])
        return msgspec.json.decode(results[key]) if key in results else None


class Stream:
    """A worker's stream, played by the test."""

    def __init__(self, scheduler: Scheduler, hello: Hello) -> None:
        self.hello = hello
        self._queue: asyncio.Queue[WorkerMessage | None] = asyncio.Queue()
        self._incoming = scheduler.attach(self._outgoing())
        self._waiting: list[SchedulerMessage] = []
        self._reader: asyncio.Task[None] | None = None
        self._pinger: asyncio.Task[None] | None = None
        self._arrived = asyncio.Event()
        self.over = asyncio.Event()

    async def open(self) -> Welcome:
        self.send(self.hello)
        self._reader = asyncio.create_task(self._read())
        welcome = await self.receive(Welcome)
        self._pinger = asyncio.create_task(self._ping())
        return welcome

    async def refused(self) -> str:
        self.send(self.hello)
        self._reader = asyncio.create_task(self._read())
        return (await self.receive(Refused)).reason

    def send(self, message: WorkerMessage) -> None:
        self._queue.put_nowait(message)

    def fall_silent(self) -> None:
        """As a worker that is stopped or cut off: the stream stays, nothing comes."""
        assert self._pinger is not None
        self._pinger.cancel()

    def hang_up(self) -> None:
        """As a worker that is killed: the stream ends without goodbye."""
        self.fall_silent()
        self._queue.put_nowait(None)

    def leave(self) -> None:
        self.fall_silent()
        self.send(Goodbye())

    async def receive(self, kind: type[M], seconds_max: float = 60) -> M:
        """The next message of a kind; others are kept for later."""
        async with asyncio.timeout(seconds_max):
            while (message := self._take(kind)) is None:
                self._arrived.clear()
                await self._arrived.wait()
        return message

    def _take(self, kind: type[M]) -> M | None:
        for index, message in enumerate(self._waiting):
            if isinstance(message, kind):
                del self._waiting[index]
                return message
        return None

    async def assignments(self, count: int = 1, seconds_max: float = 60) -> list[Assignment]:
        """The next so many assignments."""
        found: list[Assignment] = []
        while len(found) < count:
            message = await self.receive(Assignments, seconds_max)
            found += message.assignments
        return found

    async def assignment(self, seconds_max: float = 60) -> Assignment:
        (assignment,) = await self.assignments(1, seconds_max)
        return assignment

    async def nothing_comes(self, seconds: float) -> bool:
        try:
            await self.assignments(1, seconds)
        except TimeoutError:
            return True
        return False

    async def report(self, *outcomes: tuple[Token, WorkerReport]) -> Acks:
        self.send(Outcomes(tuple(Outcome(token, report) for token, report in outcomes)))
        return await self.receive(Acks)

    async def succeed(self, *tokens: Token, result: Any = None) -> Acks:
        data = None if result is None else msgspec.json.encode(result)
        return await self.report(*((token, Succeeded(token.epoch, data)) for token in tokens))

    async def fail(self, token: Token, **fields: Any) -> Acks:
        error = TaskError(type="Boom", message="it broke")
        return await self.report((token, Failed(epoch=token.epoch, error=error, **fields)))

    async def confirm_cancel(self) -> list[Token]:
        tokens = (await self.receive(Cancels)).tokens
        await self.report(*((token, CancelConfirmed(token.epoch)) for token in tokens))
        return list(tokens)

    async def _outgoing(self) -> AsyncIterator[WorkerMessage]:
        while (message := await self._queue.get()) is not None:
            yield message

    async def _read(self) -> None:
        async for message in self._incoming:
            if not isinstance(message, Ping):
                self._waiting.append(message)
                self._arrived.set()
        self.over.set()

    async def _ping(self) -> None:
        while True:
            self.send(Ping())
            await asyncio.sleep(1)


def on_a_mill(
    test: Callable[[Mill], Awaitable[None]],
    config: SchedulerConfig | None = None,
    *,
    at_work: bool = True,
) -> Callable[[], None]:
    """Run a test on virtual time with a scheduler at work."""

    def run() -> None:
        mill = Mill(config)

        async def body() -> None:
            await mill.store.migrate()
            duties = asyncio.create_task(mill.scheduler.run()) if at_work else None
            try:
                await test(mill)
            finally:
                if duties is not None:
                    duties.cancel()

        try:
            mill.loop.run_until_complete(body())
        finally:
            mill.loop.abandon()

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def on_a_mill_at_rest(test: Callable[[Mill], Awaitable[None]]) -> Callable[[], None]:
    """The same, but no scheduler works until the test lets one."""
    return on_a_mill(test, at_work=False)


def on_a_mill_of_small_turns(test: Callable[[Mill], Awaitable[None]]) -> Callable[[], None]:
    """The same, with turns that write at most 100 rows: large runs take many of them."""
    return on_a_mill(test, SchedulerConfig(turn_rows_max=100))


def a_chain(length: int, **fields: Any) -> Sequence[TaskSpec]:
    """Tasks in a row: t0, t1, …"""
    return [
        TaskSpec(
            id=f"t{place}",
            executor="noop",
            depends_on=(f"t{place - 1}",) if place else (),
            **fields,
        )
        for place in range(length)
    ]


def a_step(name: str, *parents: str, **fields: Any) -> TaskSpec:
    """One task behind its parents."""
    return TaskSpec(id=name, executor="noop", depends_on=parents, **fields)
