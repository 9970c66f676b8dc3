"""The worker: stays connected to some scheduler, runs what it is given, and leaves politely."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.worker.attempt import Attempt
from tidemill.worker.config import WorkerConfig
from tidemill.worker.crew import Crew
from tidemill.worker.executor import Executor
from tidemill.worker.link import Link, LinkLost
from tidemill.worker.session import Credentials, Session
from tidemill.worker.shift import Departure, Shift

_log = logging.getLogger("tidemill.worker")


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
        self._crew = Crew(config, executors, clock, takes_ahead=True)
        self._credentials: Credentials | None = None
        self._session: Session | None = None
        self._shift = Shift(config, self._crew, lambda: self.is_welcome)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What runs right now; other threads may ask."""
        return self._crew.attempts

    async def welcomed(self) -> None:
        """Wait for the first welcome of all."""
        await self._crew.welcomed.wait()

    async def run(self) -> Departure:
        """Work until drained; WorkerRefused when a scheduler does not want this worker."""
        return await self._shift.work(self._stay_connected())

    async def drain(self, grace_seconds: float) -> None:
        """Take no more work, let tasks finish within the grace, hand back the rest, leave."""
        await self._shift.drain(grace_seconds)

    async def _stay_connected(self) -> None:
        failures, troubled = 0, False
        place = self._first_place()
        while True:
            session = self._session = Session(self._config, self._crew, self._clock)
            session.after_trouble = troubled
            link = self._links[place]
            begun = self._clock.monotonic()
            try:
                await session.serve(link, tuple(sorted(self._executors)), self._credentials)
            except LinkLost as error:
                lost = "connection lost" if session.credentials else "no connection"
                _log.warning("%s: %s; trying on", lost, error)
                troubled = True
            else:
                troubled = False
            finally:
                self._session = None
            if session.credentials is not None:
                self._credentials = session.credentials
            if self._clock.monotonic() - begun >= self._config.healthy_seconds:
                failures = 0
            if session.said_goodbye and not self._crew.ledger.tokens:
                return
            failures += 1
            place = (place + 1) % len(self._links)
            await self._clock.sleep(self._pause(failures))

    def _first_place(self) -> int:
        """Any of the links: workers that are started alike must not all sit on the first one."""
        return int(self._entropy.fraction() * len(self._links)) if len(self._links) > 1 else 0

    @property
    def is_welcome(self) -> bool:
        """Whether a scheduler has said Welcome on the stream that is open."""
        return self._session is not None and self._session.credentials is not None

    def _pause(self, failures: int) -> float:
        longest = self._config.backoff_seconds * float(1 << min(failures - 1, 10))
        return min(self._config.backoff_seconds_max, longest) * (0.5 + self._entropy.fraction() / 2)
