"""One direction of a connection: ordered and reliable until it breaks, as a gRPC stream is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.simulation.loop import SimLoop
from tests.simulation.nodes import Node

_END = object()


class Pipe:
    """Messages on their way to one node; iterate over it on that node."""

    def __init__(self, loop: SimLoop, receiver: Node, delay: Callable[[], float]) -> None:
        self._loop = loop
        self._receiver = receiver
        self._delay = delay
        self._arrived: deque[Any] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._last_arrival = 0.0
        self._open = True
        self.blocked_until = 0.0
        self.silent = False

    def send(self, message: Any) -> None:
        """Put a message on its way; it is lost when the connection is."""
        if self._open and not self.silent:
            self._deliver_later(message)

    def finish(self) -> None:
        """Say that nothing follows, after all that was sent."""
        if self._open and not self.silent:
            self._deliver_later(_END)
            self._open = False

    def snap(self, notice: float) -> None:
        """Lose what is under way; the receiver notices after a while."""
        self._open = False
        self._loop.call_outside(notice, self._end_now)

    def _deliver_later(self, message: Any) -> None:
        arrival = max(self._loop.time() + self._delay(), self._last_arrival, self.blocked_until)
        self._last_arrival = arrival
        self._loop.call_outside(arrival - self._loop.time(), lambda: self._deliver(message))

    def _deliver(self, message: Any) -> None:
        if (self._open or message is _END) and not self.silent:
            self._arrived.append(message)
            self._wake()

    def _end_now(self) -> None:
        self._arrived.append(_END)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> Pipe:
        return self

    async def __anext__(self) -> Any:
        while not self._arrived:
            self._waiter = self._loop.create_future()
            await self._waiter
        message = self._arrived.popleft()
        if message is _END:
            self._arrived.append(_END)
            raise StopAsyncIteration
        return message
