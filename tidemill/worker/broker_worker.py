"""A worker that is reached over a broker, and over nothing else."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.ports.broker import Broker
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.worker.attempt import Attempt
from tidemill.worker.broker_session import BrokerSession, SessionClosed
from tidemill.worker.config import WorkerConfig
from tidemill.worker.crew import Crew
from tidemill.worker.executor import Executor
from tidemill.worker.shift import Departure, Shift

_log = logging.getLogger("tidemill.worker")

RESULT_BYTES_MAX = 900_000
"""Of a result that still fits into one message."""


class BrokerWorker:
    """One worker process; it draws the name of its session itself, and a new one after its end."""

    def __init__(
        self,
        config: WorkerConfig,
        broker: Broker,
        executors: Mapping[str, Executor],
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        if config.result_bytes_max > RESULT_BYTES_MAX:
            text = f"must be at most {RESULT_BYTES_MAX} over a broker, what one message may hold"
            problem = Problem(path="result_bytes_max", message=text, code="out_of_range")
            raise InvalidInput([problem])
        self._config = config
        self._broker = broker
        self._executors = executors
        self._clock = clock
        self._entropy = entropy
        self._crew = Crew(config, executors, clock)
        self._session: BrokerSession | None = None
        self._shift = Shift(config, self._crew, lambda: self.is_welcome)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What runs right now; other threads may ask."""
        return self._crew.attempts

    @property
    def is_welcome(self) -> bool:
        """Whether a scheduler has opened the session that is going on."""
        return self._session is not None and self._session.is_welcome

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
        while True:
            self._session = BrokerSession(
                self._config,
                self._crew,
                self._broker,
                self._clock,
                self._entropy.session_id(),
                sorted(self._executors),
            )
            try:
                return await self._session.serve()
            except SessionClosed as error:
                _log.warning("%s: a new one begins", error)
                self._crew.abandon(self._crew.held)
