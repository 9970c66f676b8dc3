"""What one follower has not read yet."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """An asynchronous iterator over what is put in; the oldest items go when its owner is slow."""

    def __init__(self, size_max: int) -> None:
        self._items: deque[T] = deque(maxlen=size_max)
        self._stirred = asyncio.Event()
        self._error: Exception | None = None

    def put(self, item: T) -> None:
        """Add one item."""
        self._items.append(item)
        self._stirred.set()

    def end(self, error: Exception) -> None:
        """Raise the first error to the owner once it has read what is there."""
        self._error = self._error or error
        self._stirred.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._error is not None:
                raise self._error
            self._stirred.clear()
            await self._stirred.wait()
        return self._items.popleft()
