"""Real time and real chance for clients, which live in programs of their own."""

from __future__ import annotations

import asyncio
import random
import secrets
import time


class System:
    """What a client needs of the machine that it runs on; tests hand in another one."""

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await asyncio.sleep(seconds)

    def fraction(self) -> float:
        """Good enough to spread load, not to keep a secret."""
        return random.random()

    def fresh_key(self) -> str:
        """An idempotency key that nobody else has."""
        return secrets.token_hex(16)
