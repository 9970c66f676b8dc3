"""The worker: stays connected to some scheduler, runs what it is given, and leaves politely."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.worker.attempt import Attempt
from tidemill.worker.config import WorkerConfig
from tidemill.worker.crew import Crew
from tidemill.worker.executor import Executor
from tidemill.worker.link import Link, LinkLost
from tidemill.worker.session import Credentials, Session

_log = logging.getLogger("tidemill.worker")


class Departure(StrEnum):
    """Why a worker ended."""

    DRAINED = "drained"  # somebody asked it to
    WORN_OUT = "worn_out"  # too many slots are stuck: a fresh process should take its place


class Worker:
    """One worker process. Several links are tried in turn: any scheduler will do."""

    def __init__(
        self,
        config: WorkerConfig,
        links: Sequence[Link],
        executors: Mapping[str, Executor],
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        assert links, "a worker needs at least one link"
        self._config = config
        self._links = tuple(links)
        self._executors = executors
        self._clock = clock
        self._entropy = entropy
        self._crew = Crew(config, executors, clock)
        self._credentials: Credentials | None = None
        self._session: Session | None = None
        self._connection: asyncio.Task[None] | None = None

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What runs right now; other threads may ask."""
        return self._crew.attempts

    async def run(self) -> Departure:
        """Work until drained; WorkerRefused when a scheduler does not want this worker."""
        self._crew.output.on_first = _waker(self._crew.changed)
        self._connection = asyncio.create_task(self._stay_connected())
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
            if owing or self._is_welcome:  # otherwise there is nobody to take leave of
                await asyncio.wait([self._connection], timeout=self._config.goodbye_seconds)
            self._connection.cancel()

    async def _stay_connected(self) -> None:
        failures = 0
        while True:
            session = self._session = Session(self._config, self._crew, self._clock)
            link = self._links[failures % len(self._links)]
            begun = self._clock.monotonic()
            try:
                await session.serve(link, tuple(sorted(self._executors)), self._credentials)
            except LinkLost as error:
                _log.warning("connection lost: %s", error)
            finally:
                self._session = None
            if session.credentials is not None:
                self._credentials = session.credentials
            if self._clock.monotonic() - begun >= self._config.healthy_seconds:
                failures = 0
            if session.said_goodbye and not self._crew.ledger.tokens:
                return
            failures += 1
            await self._clock.sleep(self._pause(failures))

    @property
    def _is_welcome(self) -> bool:
        return self._session is not None and self._session.credentials is not None

    def _pause(self, failures: int) -> float:
        longest = self._config.backoff_seconds * float(1 << min(failures - 1, 10))
        return min(self._config.backoff_seconds_max, longest) * (0.5 + self._entropy.fraction() / 2)


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
