"""Output of attempts, gathered and written in batches."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from tidemill.domain.errors import TidemillError
from tidemill.ports.store import LogChunk
from tidemill.protocol.messages import LogText
from tidemill.scheduler.desk import Desk

log = logging.getLogger(__name__)


class LogKeeper:
    """Keeps the last output of each attempt in the store."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._chunks: deque[LogChunk] = deque(maxlen=desk.config.log_chunks_max)

    def add(self, chunks: Sequence[LogText]) -> None:
        """Take in output; when the store is slow the oldest is dropped."""
        self._chunks.extend(LogChunk(chunk.token, chunk.text, chunk.dropped) for chunk in chunks)

    async def run(self) -> None:
        """Write what has gathered, again and again."""
        while True:
            await self._desk.clock.sleep(self._desk.config.log_flush_seconds)
            await self.step()

    async def step(self) -> int:
        """Write what has gathered; return how many chunks."""
        if not self._chunks:
            return 0
        batch = list(self._chunks)
        self._chunks.clear()
        try:
            async with self._desk.store.transaction() as tx:
                await tx.history.add_logs(batch, self._desk.config.log_bytes_max)
        except TidemillError as error:
            log.warning("output of attempts is not kept: %s", error)
        return len(batch)
