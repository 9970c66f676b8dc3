"""A worker's shift: from its first connection to its polite leave, whatever it is connected by."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from typing import Any

from tidemill.worker.config import WorkerConfig
from tidemill.worker.crew import Crew

_log = logging.getLogger("tidemill.worker")


class Departure(StrEnum):
    """Why a worker ended."""

    DRAINED = "drained"  # somebody asked it to
    WORN_OUT = "worn_out"  # too many slots are stuck: a fresh process should take its place


class Shift:
    """Keeps a worker connected until it is drained, or worn out."""

    def __init__(self, config: WorkerConfig, crew: Crew, is_welcome: Callable[[], bool]) -> None:
        self._config = config
        self._is_welcome = is_welcome
        self._crew = crew
        self._connection: asyncio.Task[None] | None = None

    async def work(self, stay_connected: Coroutine[Any, Any, None]) -> Departure:
        """Work until drained, or until the connection is over for good."""
        self._crew.output.on_first = _waker(self._crew.changed)
        self._connection = asyncio.create_task(stay_connected)
        worn_out = asyncio.create_task(self._crew.worn_out.wait())
        try:
            await asyncio.wait([self._connection, worn_out], return_when=asyncio.FIRST_COMPLETED)
            if not self._connection.done():
                _log.warning("%d slots are stuck: the worker leaves", self._crew.slots.stuck)
                await self.drain(self._config.worn_grace_seconds)
            if self._connection.done() and not self._connection.cancelled():
                self._connection.result()
        finally:
            self._connection.cancel()
            worn_out.cancel()
            self._crew.release_rest()
        return Departure.WORN_OUT if worn_out.done() else Departure.DRAINED

    async def drain(self, grace_seconds: float) -> None:
        """Take no more work, let tasks finish within the grace, hand back the rest, leave."""
        self._crew.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self._crew.idle.wait()
        self._crew.release_rest()
        await self._crew.idle.wait()  # bounded: an attempt that does not stop is called stuck
        self._crew.leave()
        if self._connection is not None:
            owing = self._crew.held or self._crew.output
            if owing or self._is_welcome():  # otherwise there is nobody to take leave of
                await asyncio.wait([self._connection], timeout=self._config.goodbye_seconds)
            self._connection.cancel()


def _waker(event: asyncio.Event) -> Callable[[], None]:
    """Sets the event from any thread."""
    loop = asyncio.get_running_loop()
    home = threading.get_ident()

    def wake() -> None:
        if threading.get_ident() == home:
            event.set()
        else:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(event.set)

    return wake
