"""Bus and broker within one process: nothing to install, nothing that outlives the process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, TypeVar

from tidemill.buses.mailbox import Mailbox
from tidemill.ports.broker import Message
from tidemill.ports.bus import Event, Hint

T = TypeVar("T")

SET_ASIDE_MAX = 1_000


class MemoryBus:
    """Carries events and hints between the parts of one process, as values: nothing is encoded."""

    def __init__(self, queued_max: int = 10_000) -> None:
        self._events: _Fan[Event] = _Fan(queued_max)
        self._hints: _Fan[Hint] = _Fan(queued_max)
        self._dead: _Fan[Message] = _Fan(queued_max)
        self.aside: deque[Message] = deque(maxlen=SET_ASIDE_MAX)

    def is_heard(self) -> bool:
        """Whether anybody follows events, or what is set aside."""
        return self._events.is_followed or self._dead.is_followed

    async def publish(self, events: Sequence[Event]) -> None:
        """Hand events to whoever subscribed."""
        self._events.spread(events)

    @asynccontextmanager
    async def subscribe(self, namespace: str | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        """Follow the events published from now on; a slow subscriber loses the oldest ones."""
        with self._events.mailbox() as events:
            yield events if namespace is None else _within(namespace, events)

    async def send_hint(self, hint: Hint) -> None:
        """Wake the schedulers of this process."""
        self._hints.spread([hint])

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[Hint]]:
        """Follow the hints sent from now on."""
        with self._hints.mailbox() as hints:
            yield hints

    async def set_aside(self, message: Message) -> None:
        """Keep what nobody can read in `aside`, the latest of it."""
        self.aside.append(message)
        self._dead.spread([message])

    @asynccontextmanager
    async def set_aside_messages(self) -> AsyncIterator[AsyncIterator[Message]]:
        """Follow what is set aside from now on."""
        with self._dead.mailbox() as messages:
            yield messages

    async def close(self) -> None:
        """Nothing is held."""


class MemoryBroker:
    """Implements ports.broker.Broker; of each topic the latest messages are kept."""

    def __init__(self, kept_max: int = 10_000) -> None:
        self._kept_max = kept_max
        self._topics: dict[str, _Topic] = {}

    async def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Append messages."""
        self._topic(topic).append(messages)

    @asynccontextmanager
    async def consume(self, topics: Sequence[str], group: str) -> AsyncIterator[_Member]:
        """Join a group; one that is new begins with the oldest message kept."""
        member = _Member([self._topic(name) for name in topics], group)
        with member.listening():
            yield member

    @asynccontextmanager
    async def follow(
        self, topic: str, key: str | None = None
    ) -> AsyncIterator[AsyncIterator[Message]]:
        """See every message sent from now on, those of other keys too."""
        with self._topic(topic).followers.mailbox() as messages:
            yield messages

    async def close(self) -> None:
        """Nothing is held."""

    def _topic(self, name: str) -> _Topic:
        return self._topics.setdefault(name, _Topic(self._kept_max))


class _Member:
    """A consumer; whichever of a group asks first gets what is next."""

    def __init__(self, topics: Sequence[_Topic], group: str) -> None:
        self._topics = list(topics)
        self._group = group
        self._stirred = asyncio.Event()

    async def take(self, limit: int) -> list[Message]:
        """Wait for messages; members take turns, and so do the topics in coming first."""
        assert limit > 0, "a member that takes nothing does not ask"
        await _let_others_go_first()
        while not (taken := self._take(limit)):
            self._stirred.clear()
            await self._stirred.wait()
        self._topics.append(self._topics.pop(0))
        return taken

    def _take(self, limit: int) -> list[Message]:
        taken: list[Message] = []
        for topic in self._topics:
            taken += topic.take(self._group, limit - len(taken))
        return taken

    @contextmanager
    def listening(self) -> Iterator[None]:
        for topic in self._topics:
            topic.members.append(self._stirred)
        try:
            yield
        finally:
            for topic in self._topics:
                topic.members.remove(self._stirred)


class _Topic:
    """The latest messages of a topic, and how far each group has come."""

    def __init__(self, kept_max: int) -> None:
        self.followers: _Fan[Message] = _Fan(kept_max)
        self.members: list[asyncio.Event] = []
        self._messages: deque[Message] = deque(maxlen=kept_max)
        self._count = 0
        self._places: dict[str, int] = {}

    def append(self, messages: Sequence[Message]) -> None:
        self._messages.extend(messages)
        self._count += len(messages)
        self.followers.spread(messages)
        for stirred in self.members:
            stirred.set()

    def take(self, group: str, limit: int) -> list[Message]:
        first = self._count - len(self._messages)
        begin = max(self._places.get(group, 0), first)
        end = min(begin + limit, self._count)
        self._places[group] = end
        return [self._messages[place - first] for place in range(begin, end)]


class _Fan(Generic[T]):
    """One copy for each follower."""

    def __init__(self, queued_max: int) -> None:
        self._queued_max = queued_max
        self._mailboxes: list[Mailbox[T]] = []

    @property
    def is_followed(self) -> bool:
        return bool(self._mailboxes)

    def spread(self, items: Sequence[T]) -> None:
        for mailbox in self._mailboxes:
            for item in items:
                mailbox.put(item)

    @contextmanager
    def mailbox(self) -> Iterator[Mailbox[T]]:
        mailbox: Mailbox[T] = Mailbox(self._queued_max)
        self._mailboxes.append(mailbox)
        try:
            yield mailbox
        finally:
            self._mailboxes.remove(mailbox)


async def _let_others_go_first() -> None:
    loop = asyncio.get_running_loop()
    turn = asyncio.Event()
    loop.call_soon(turn.set)
    await turn.wait()


async def _within(namespace: str, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        if event.fact.namespace == namespace:
            yield event
