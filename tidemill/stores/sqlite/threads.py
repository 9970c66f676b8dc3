"""Where calls into SQLite run: on a thread of their own, or right here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from tidemill.domain.errors import Unavailable

Result = TypeVar("Result")


class Place(Protocol):
    """Runs blocking calls one after the other, in the order in which they were handed over."""

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run one call and return what it returns."""

    def close(self) -> None:
        """Wait for the call under way, and take no more; safe to call twice."""


class Here:
    """Runs calls inside the coroutine: nothing else happens meanwhile. For simulations."""

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run one call, without giving way to other coroutines."""
        return call()

    def close(self) -> None:
        """Nothing to let go of."""


class OwnThread:
    """Runs calls on one thread, so that the event loop never waits for the disk."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._closed = False

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run one call on the thread. A caller that is cancelled leaves the call to its end."""
        if self._closed:
            raise Unavailable("SQLite: the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._executor.shutdown(wait=True)
