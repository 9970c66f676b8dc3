"""The bus within one process: queues in memory, nothing to install."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from tidemill.ports.bus import Event, Hint

T = TypeVar("T")


class MemoryBus:
    """Carries events and hints between the parts of one process."""

    def __init__(self, queued_max: int = 10_000) -> None:
        self._events: _Topic[Event] = _Topic(queued_max)
        self._hints: _Topic[Hint] = _Topic(queued_max)

    async def publish(self, events: Sequence[Event]) -> None:
        """Hand events to whoever subscribed."""
        self._events.send(events)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[Event]]:
        """Follow the events published from now on; a slow subscriber loses the oldest ones."""
        async with self._events.follow() as events:
            yield events

    async def send_hint(self, hint: Hint) -> None:
        """Wake the schedulers of this process."""
        self._hints.send([hint])

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[Hint]]:
        """Follow the hints sent from now on."""
        async with self._hints.follow() as hints:
            yield hints

    async def close(self) -> None:
        """Nothing is held."""


class _Topic(Generic[T]):
    def __init__(self, queued_max: int) -> None:
        self._queued_max = queued_max
        self._queues: list[asyncio.Queue[T]] = []

    def send(self, items: Sequence[T]) -> None:
        for queue in self._queues:
            for item in items:
                if queue.full():
                    queue.get_nowait()
                queue.put_nowait(item)

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[AsyncIterator[T]]:
        queue: asyncio.Queue[T] = asyncio.Queue(self._queued_max)
        self._queues.append(queue)
        try:
            yield _drain(queue)
        finally:
            self._queues.remove(queue)


async def _drain(queue: asyncio.Queue[T]) -> AsyncIterator[T]:
    while True:
        yield await queue.get()
