"""A proxy before PostgreSQL that counts what passes: queries, and begins and ends of transactions.

It reads the protocol itself, so nothing escapes it, and neither client nor server knows of it.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

from tests.servers.proxy import Line, Proxy, proxied

CONTROL = (b"BEGIN", b"COMMIT", b"ROLLBACK")
SIMPLE, EXECUTE = b"Q", b"E"


class StatementCounter(Proxy):
    """How many queries and how much transaction control one role has sent."""

    queries = 0
    control = 0

    async def carry_questions(self, reader: asyncio.StreamReader, line: Line) -> None:
        """Pass on and count, message by message."""
        # Cancelled when the measurement is over: then there is nothing left to tell.
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            length = await reader.readexactly(4)  # the first message has no kind
            line.to_server.write(length + await reader.readexactly(int.from_bytes(length) - 4))
            while kind := await reader.read(1):
                length = await reader.readexactly(4)
                body = await reader.readexactly(int.from_bytes(length) - 4)
                self._count(kind, body)
                line.to_server.write(kind + length + body)
                await line.to_server.drain()

    def _count(self, kind: bytes, body: bytes) -> None:
        if kind == SIMPLE and body.startswith(CONTROL):
            self.control += 1
        elif kind in {SIMPLE, EXECUTE}:
            self.queries += 1


def counted(dsn: str, folder: Path) -> AbstractAsyncContextManager[tuple[StatementCounter, str]]:
    """A counter before the server of the address given, and its own address."""
    return proxied(StatementCounter, dsn, folder)
