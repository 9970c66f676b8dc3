"""A thread with an event loop in it, for programs that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """Runs coroutines for callers that block; one thread for the life of a client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="tidemill-client", daemon=True
        )
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether the thread has ended."""
        return self._loop.is_closed()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; Ctrl-C in the caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of an asynchronous iterator, each fetched when it is asked for."""
        try:
            while True:
                try:
                    yield self.call(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self.call(_close(items))

    def close(self) -> None:
        """End the thread; safe to call twice."""
        if self.closed:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(items: AsyncIterator[Any]) -> None:
    if (close := getattr(items, "aclose", None)) is not None:
        await close()
