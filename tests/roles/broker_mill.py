"""A mill whose workers are reached over a broker: real workers, real schedulers, virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, cast

import msgspec

from tests.roles.mill import Mill, on_a_mill
from tests.roles.worker_stage import Doing
from tests.simulation.nodes import Node
from tidemill.buses.mailbox import Mailbox
from tidemill.buses.memory import MemoryBroker
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.gateway.broker_gateway import BrokerGateway
from tidemill.ports.broker import Consumer, Message
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.worker.broker_worker import BrokerWorker
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Call

Copies = Callable[[str, str], int]
"""From a topic and the type of an event to how many copies of it are delivered."""


class FaultyBroker:
    """A broker in memory that the test takes down, and whose messages it loses and doubles."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Message]] = []
        self.is_down = False
        self.to_everyone = False  # each member of a group gets each message
        self.copies: Copies = lambda _topic, _kind: 1
        self.loses: Callable[[Message], bool] = lambda _message: False
        self._inner = MemoryBroker()
        self._followers: list[Mailbox[Message]] = []
        self._members = count(1)

    async def send(self, topic: str, messages: Sequence[Message]) -> None:
        self.check()
        for message in messages:
            self.sent.append((topic, message))
            copies = 0 if self.loses(message) else self.copies(topic, kind_of(message))
            await self._inner.send(topic, [message] * copies)

    @asynccontextmanager
    async def consume(self, topics: Sequence[str], group: str) -> AsyncIterator[Consumer]:
        self.check()
        group = f"{group}.{next(self._members)}" if self.to_everyone else group
        async with self._inner.consume(topics, group) as consumer:
            yield _Member(self, consumer)

    @asynccontextmanager
    async def follow(
        self, topic: str, key: str | None = None
    ) -> AsyncIterator[AsyncIterator[Message]]:
        self.check()
        async with self._inner.follow(topic, key) as messages:
            self._followers.append(cast(Mailbox[Message], messages))
            yield messages

    async def close(self) -> None:
        """Nothing is held."""

    def go_down(self) -> None:
        """Refuse everything, and cut off whoever follows."""
        self.is_down = True
        for mailbox in self._followers:
            mailbox.end(Unavailable("the broker went down"))
        self._followers.clear()

    def on(self, topic: str) -> list[dict[str, Any]]:
        """What was sent to a topic, as data."""
        return [data_of(message) for name, message in self.sent if name == topic]

    def dead(self) -> list[Message]:
        """What nobody could read."""
        return [message for name, message in self.sent if name == "dead"]

    def check(self) -> None:
        if self.is_down:
            raise Unavailable("the broker is down")


class _Member:
    def __init__(self, broker: FaultyBroker, consumer: Consumer) -> None:
        self._broker = broker
        self._consumer = consumer

    async def take(self, limit: int) -> list[Message]:
        self._broker.check()
        return await self._consumer.take(limit)


def kind_of(message: Message) -> str:
    """The type of an event without what all of them share: `task.started`."""
    try:
        name: str = msgspec.json.decode(message.value)["type"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return ""
    return name.removeprefix("tidemill.").removesuffix(".v1")


def data_of(message: Message) -> dict[str, Any]:
    """What an event says."""
    data: dict[str, Any] = msgspec.json.decode(message.value)["data"]
    return data


class Hired(Node):
    """A worker process, which may be killed and paused."""

    def __init__(self, mill: Mill, worker: BrokerWorker, name: str) -> None:
        super().__init__(mill.loop, name)
        self.worker = worker
        self.task = self.spawn(worker.run())

    @property
    def session(self) -> str:
        """The session that it has now."""
        assert self.worker._session is not None
        return self.worker._session.id


class BrokerMill:
    """A mill, a broker and the workers behind it."""

    def __init__(self, mill: Mill) -> None:
        self.mill = mill
        self.broker = FaultyBroker()
        self.ran: list[tuple[str, str]] = []  # which worker has begun which task
        self.gate = asyncio.Event()  # tasks wait for it
        self.gate.set()
        self.together: list[set[str]] = []  # what ran in one worker at once
        self._workers: dict[str, BrokerWorker] = {}
        self._duties: list[asyncio.Task[None]] = []

    def serve(self, scheduler: Scheduler | None = None) -> None:
        """Let a scheduler serve the workers behind the broker."""
        door = (scheduler or self.mill.scheduler).pool_door
        gateway = BrokerGateway(door, self.broker, self.mill.clock)
        self._duties.append(asyncio.create_task(gateway.run()))

    def start(self, scheduler: Scheduler) -> None:
        """Let another scheduler work, and serve."""
        self._duties.append(asyncio.create_task(scheduler.run()))
        self.serve(scheduler)

    def hire(self, name: str = "w", **config: Any) -> Hired:
        """Start a worker, whose tasks wait for the gate."""
        mill = self.mill
        plain: dict[str, Any] = {"name": name, "slots": 4}
        executors = dict.fromkeys(("noop", "python"), Doing(lambda call: self._do(name, call)))
        worker = BrokerWorker(
            WorkerConfig(**(plain | config)), self.broker, executors, mill.clock, mill.entropy
        )
        self._workers[name] = worker
        return Hired(mill, worker, name)

    async def _do(self, name: str, call: Call) -> Any:
        self.ran.append((name, call.context.task))
        running = [one.assignment.task for one in self._workers[name].attempts]
        self.together.append(set(running))
        call.context.voice.write(f"{name} runs {call.context.task}\n")
        call.context.progress(0.5, "half")
        await self.gate.wait()
        return {"by": name}

    async def begun(self, number: int, seconds_max: float = 60) -> None:
        """Wait until so many task bodies have begun."""
        async with asyncio.timeout(seconds_max):
            while len(self.ran) < number:
                await self.mill.clock.sleep(0.01)

    async def until(self, run_id: RunId, state: TaskState, seconds_max: float = 60) -> TaskRun:
        """Wait until the first task of a run is in a state."""
        async with asyncio.timeout(seconds_max):
            while (task := await self.mill.task(run_id)).state is not state:
                await self.mill.clock.sleep(0.01)
        return task

    async def spent(self, run_id: RunId) -> tuple[int, int]:
        """Failures and losses of all tasks of a run."""
        tasks = await self.mill.store.reader.tasks("default", run_id, -1, 1_000)
        return sum(task.failures for task in tasks), sum(task.losses for task in tasks)


def on_a_broker_mill(
    test: Callable[[BrokerMill], Awaitable[None]], config: SchedulerConfig | None = None
) -> Callable[[], None]:
    """Run a test on virtual time with a scheduler that serves workers behind a broker."""

    async def body(mill: Mill) -> None:
        stage = BrokerMill(mill)
        stage.serve()
        await test(stage)

    body.__name__ = test.__name__
    body.__doc__ = test.__doc__
    return on_a_mill(body, config)
