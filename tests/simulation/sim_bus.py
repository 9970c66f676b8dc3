"""A bus that loses, doubles, delays and reorders, refuses, or is not there at all."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.simulation.chance import Chance
from tests.simulation.loop import SimLoop
from tests.simulation.nodes import Node
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message
from tidemill.ports.bus import Event, Hint

BUFFER_MAX = 100


class Hub:
    """The broker behind all nodes' buses; remembers what was published, for the checkers."""

    def __init__(self, loop: SimLoop, chance: Chance) -> None:
        self.loop = loop
        self.chance = chance
        self.deleted = chance.sometimes("bus.deleted")
        self.published: list[Event] = []
        self.listeners: dict[str, list[Listener]] = {"hints": [], "events": [], "dead": []}

    def accept(self, events: Sequence[Event]) -> None:
        """Take events; what happens to them on the way is another matter."""
        if not self.deleted:
            self.published.extend(events)
            for event in events:
                self.spread("events", event)

    def spread(self, channel: str, item: Any) -> None:
        """Send one item to all listeners, each with a fate of its own."""
        if self.deleted:
            return
        for listener in self.listeners[channel]:
            if not self.chance.sometimes("bus.lose"):
                copies = 3 if self.chance.sometimes("bus.duplicate") else 1
                for _ in range(copies):
                    self._send(listener, item)

    def _send(self, listener: Listener, item: Any) -> None:
        late = self.chance.sometimes("bus.delay")
        delay = self.chance.random.choice((0.05, 1.0, 30.0)) if late else 0.001
        self.loop.call_outside(delay, lambda: listener.receive(item))


class Listener:
    """What one node has not read yet; the oldest go when it is slow."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._items: deque[Any] = deque(maxlen=BUFFER_MAX)
        self._waiter: asyncio.Future[None] | None = None

    def receive(self, item: Any) -> None:
        """Take one item in."""
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> Any:
        while not self._items:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._items.popleft()


class SimBus:
    """The bus as one node sees it."""

    def __init__(self, hub: Hub, node: Node) -> None:
        self._hub = hub
        self._node = node

    async def publish(self, events: Sequence[Event]) -> None:
        """Hand over events, or Unavailable: sometimes after taking them all the same."""
        await asyncio.sleep(0.001)
        if self._hub.chance.sometimes("bus.refuse"):
            if self._hub.chance.random.random() < 0.5:
                self._hub.accept(events)
            raise Unavailable("the bus is down")
        self._hub.accept(events)

    async def set_aside(self, message: Message) -> None:
        """Keep what nobody can read, or Unavailable."""
        if self._hub.chance.sometimes("bus.refuse"):
            raise Unavailable("the bus is down")
        self._hub.spread("dead", message)

    async def send_hint(self, hint: Hint) -> None:
        """Wake whoever the hint reaches."""
        self._hub.spread("hints", hint)

    @asynccontextmanager
    async def subscribe(self, namespace: str | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        """Follow events; the simulator has one namespace."""
        async with self._listen("events") as listener:
            yield listener

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[Hint]]:
        """Follow hints."""
        async with self._listen("hints") as listener:
            yield listener

    @asynccontextmanager
    async def set_aside_messages(self) -> AsyncIterator[AsyncIterator[Message]]:
        """Follow what is set aside."""
        async with self._listen("dead") as listener:
            yield listener

    async def close(self) -> None:
        """Nothing to let go of."""

    @asynccontextmanager
    async def _listen(self, channel: str) -> AsyncIterator[Any]:
        listener = Listener(self._hub.loop)
        listeners = self._hub.listeners[channel]

        def leave() -> None:
            if listener in listeners:
                listeners.remove(listener)

        listeners.append(listener)
        self._node.on_kill.append(leave)
        try:
            yield listener
        finally:
            leave()
