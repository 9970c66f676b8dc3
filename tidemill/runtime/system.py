"""Real time and real chance; everything else is handed these two."""

from __future__ import annotations

import asyncio
import random
import secrets
import time

import uuid_utils

from tidemill.domain.identifiers import Moment, RunId, SessionId


class SystemClock:
    """The clock of this machine."""

    def now(self) -> Moment:
        """The wall clock."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await asyncio.sleep(seconds)


class SystemEntropy:
    """The chance of this machine."""

    def fraction(self) -> float:
        """Good enough to spread load, not to keep a secret."""
        return random.random()

    def run_id(self) -> RunId:
        """A UUIDv7: ids of later runs sort behind those of earlier ones."""
        return RunId(str(uuid_utils.uuid7()))

    def session_id(self) -> SessionId:
        """128 random bits."""
        return SessionId(secrets.token_hex(16))

    def secret(self) -> str:
        """256 random bits."""
        return secrets.token_hex(32)
