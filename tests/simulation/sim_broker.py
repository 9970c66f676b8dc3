"""A broker that loses, doubles, delays and reorders, refuses, cuts off, and is away at times.

Its chance is its own: worlds without workers behind a broker draw what they always drew.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

from tests.simulation.executions import Executions
from tests.simulation.loop import SimLoop
from tests.simulation.nodes import Node
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message
from tidemill.protocol.broker_codec import report_of
from tidemill.protocol.broker_messages import (
    REPORTS,
    Cancelled,
    Completed,
    Failed,
    Goodbye,
    Released,
    decode_report,
)
from tidemill.protocol.messages import Outcome, Outcomes
from tidemill.worker.broker_worker import BrokerWorker

# Every fault kind, with the share of opportunities at which it strikes at strength 1.
BROKER_FAULTS = {
    "broker.lose": 0.1,
    "broker.duplicate": 0.1,
    "broker.delay": 0.1,
    "broker.refuse": 0.03,
    "broker.refuse_after": 0.03,
    "broker.cut": 0.01,
    "broker.take_along": 0.02,  # a member dies, or leaves, with what it was given
    "broker.outage": 0.15,
}
DELAY_SECONDS = (0.05, 0.5, 3.0, 20.0)
OUTAGE_SECONDS = (0.5, 3.0, 10.0, 20.0)
KEPT_MAX = 1_000
QUIET_SHARE = 0.2


class BrokerHub:
    """The broker itself: topics, groups and followers."""

    def __init__(self, loop: SimLoop, seed: int) -> None:
        self.loop = loop
        self.random = Random(seed ^ 0xB20CE2)
        self.counts: Counter[str] = Counter()
        self.faults_on = True
        self._strength = self._draw()
        self._down_until = 0.0
        self._queues: dict[tuple[str, str], Queue] = {}  # by topic and group
        self._unread: dict[str, list[Message]] = {}  # of topics that no group has read yet
        self._followers: dict[str, list[Queue]] = {}

    def _draw(self) -> dict[str, float]:
        quiet = self.random.random() < QUIET_SHARE
        share = self.random.choice((0.2, 0.5, 0.8))
        return {
            name: 0.0 if quiet or self.random.random() >= share else self.random.choice((0.5, 1, 2))
            for name in BROKER_FAULTS
        }

    def describe(self) -> str:
        """The faults of this seed and their strengths."""
        return " ".join(f"{name}x{value:g}" for name, value in self._strength.items() if value)

    def sometimes(self, name: str) -> bool:
        """Whether a fault strikes at this opportunity."""
        probability = BROKER_FAULTS[name] * self._strength[name]
        if not self.faults_on or not probability or self.random.random() >= probability:
            return False
        self.counts[name] += 1
        return True

    async def storm(self) -> None:
        """Be away now and then, while faults last."""
        while self.faults_on:
            await asyncio.sleep(1.0)
            if self.sometimes("broker.outage"):
                self._down_until = self.loop.time() + self.random.choice(OUTAGE_SECONDS)
                self._cut_all()

    def mend(self) -> None:
        """Do nothing wrong from now on."""
        self.faults_on = False
        self._down_until = 0.0

    def check(self) -> None:
        """Unavailable while the broker is away."""
        if self.loop.time() < self._down_until:
            raise Unavailable("the broker is away")

    def accept(self, topic: str, message: Message) -> None:
        """Take a message; each reader gets it with a fate of its own."""
        groups = [queue for (name, _), queue in self._queues.items() if name == topic]
        if not groups:
            self._unread.setdefault(topic, []).append(message)
        for queue in groups:
            self._deliver(queue, message)
        for queue in self._followers.get(topic, ()):
            if self.sometimes("broker.cut"):
                queue.cut()
            self._deliver(queue, message)

    def group(self, topic: str, name: str) -> Queue:
        """What a group has not read of a topic."""
        if (topic, name) not in self._queues:
            queue = self._queues[topic, name] = Queue(self.loop)
            for message in self._unread.pop(topic, ()):
                queue.put(message)
        return self._queues[topic, name]

    def follower(self, topic: str, node: Node) -> Queue:
        """What one follower has not read of a topic."""
        queue = Queue(self.loop)
        followers = self._followers.setdefault(topic, [])
        followers.append(queue)
        node.on_kill.append(lambda: self.leave(topic, queue))
        return queue

    def leave(self, topic: str, queue: Queue) -> None:
        """Follow no longer."""
        if queue in self._followers[topic]:
            self._followers[topic].remove(queue)

    def _deliver(self, queue: Queue, message: Message) -> None:
        if self.sometimes("broker.lose"):
            return
        for _ in range(3 if self.sometimes("broker.duplicate") else 1):
            late = self.sometimes("broker.delay")
            delay = self.random.choice(DELAY_SECONDS) if late else self.random.uniform(0.001, 0.004)
            self.loop.call_outside(delay, lambda: queue.put(message))

    def _cut_all(self) -> None:
        for followers in self._followers.values():
            for queue in followers:
                queue.cut()


class Queue:
    """Messages that somebody has not read yet."""

    def __init__(self, loop: SimLoop) -> None:
        self.items: deque[Message] = deque(maxlen=KEPT_MAX)
        self._loop = loop
        self._waiters: list[asyncio.Future[None]] = []
        self._is_cut = False

    def put(self, message: Message) -> None:
        """Add one."""
        self.items.append(message)
        self._wake()

    def cut(self) -> None:
        """Break the connection of whoever reads."""
        self._is_cut = True
        self._wake()

    async def wait(self) -> None:
        """Until there is something; Unavailable when it was cut."""
        while not self.items and not self._is_cut:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        if self._is_cut:
            raise Unavailable("cut off from the broker")

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def __aiter__(self) -> Queue:
        return self

    async def __anext__(self) -> Message:
        await self.wait()
        return self.items.popleft()


class SimBroker:
    """The broker as one node sees it; implements ports.broker.Broker."""

    def __init__(self, hub: BrokerHub, node: Node) -> None:
        self._hub = hub
        self._node = node
        self.on_send: Callable[[str, Message], None] = lambda _topic, _message: None

    async def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Hand over messages, or Unavailable: sometimes after taking them all the same."""
        for message in messages:
            self.on_send(topic, message)
        await asyncio.sleep(0.001)
        self._hub.check()
        if self._hub.sometimes("broker.refuse"):
            raise Unavailable("the broker refuses")
        for message in messages:
            self._hub.accept(topic, message)
        if self._hub.sometimes("broker.refuse_after"):
            raise Unavailable("the broker's answer is lost")

    @asynccontextmanager
    async def consume(self, topics: Sequence[str], group: str) -> AsyncIterator[_Member]:
        """Join a group."""
        self._hub.check()
        (topic,) = topics
        yield _Member(self._hub, self._hub.group(topic, group))

    @asynccontextmanager
    async def follow(
        self, topic: str, key: str | None = None
    ) -> AsyncIterator[AsyncIterator[Message]]:
        """See what is sent from now on."""
        self._hub.check()
        queue = self._hub.follower(topic, self._node)
        try:
            yield queue
        finally:
            self._hub.leave(topic, queue)

    async def close(self) -> None:
        """Nothing to let go of."""


class _Member:
    def __init__(self, hub: BrokerHub, queue: Queue) -> None:
        self._hub = hub
        self._queue = queue

    async def take(self, limit: int) -> list[Message]:
        """Wait for messages; what is taken is taken, whatever becomes of it."""
        await self._queue.wait()
        self._hub.check()
        taken = [self._queue.items.popleft() for _ in range(min(limit, len(self._queue.items)))]
        if self._hub.sometimes("broker.take_along"):
            raise Unavailable("the group was rebalanced")
        return taken


def spy_on(broker: SimBroker, worker: BrokerWorker, executions: Executions) -> None:
    """Let the checkers hear what a worker says about its grants."""

    def hear(topic: str, message: Message) -> None:
        report = decode_report(message.value) if topic == REPORTS else None
        match report:
            case Released(unbound=True):
                """It never began."""
            case Completed() | Failed() | Cancelled() | Released():
                executions.spy(Outcomes((Outcome(report.token, report_of(report)),)))
            case Goodbye():
                executions.note_released(worker._crew.released)

    broker.on_send = hear
