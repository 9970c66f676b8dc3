"""A proxy before PostgreSQL that counts what passes: queries, and begins and ends of transactions.

It reads the protocol itself, so nothing escapes it, and neither client nor server knows of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

SOCKET_NAME = ".s.PGSQL.5432"
CONTROL = (b"BEGIN", b"COMMIT", b"ROLLBACK")
SIMPLE, EXECUTE = b"Q", b"E"


class StatementCounter:
    """How many queries and how much transaction control one role has sent."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._conversations: set[asyncio.Task[None]] = set()
        self.queries = 0
        self.control = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        from_server, to_server = await asyncio.open_unix_connection(str(self._server))
        answers = asyncio.create_task(_carry(from_server, writer))
        try:
            # Cancelled when the measurement is over: then there is nothing left to tell.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self._carry_questions(reader, to_server)
        finally:
            answers.cancel()
            await asyncio.wait([answers])
            to_server.close()
            writer.close()
            self._conversations.discard(task)

    async def hang_up(self) -> None:
        """End every conversation."""
        for task in list(self._conversations):
            task.cancel()
        if self._conversations:
            await asyncio.wait(list(self._conversations))

    async def _carry_questions(
        self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter
    ) -> None:
        length = await reader.readexactly(4)  # the first message has no kind
        to_server.write(length + await reader.readexactly(int.from_bytes(length) - 4))
        while kind := await reader.read(1):
            length = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(length) - 4)
            self._count(kind, body)
            to_server.write(kind + length + body)
            await to_server.drain()

    def _count(self, kind: bytes, body: bytes) -> None:
        if kind == SIMPLE and body.startswith(CONTROL):
            self.control += 1
        elif kind in {SIMPLE, EXECUTE}:
            self.queries += 1


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def counted(dsn: str, folder: Path) -> AsyncIterator[tuple[StatementCounter, str]]:
    """A counter before the server of the address given, and its own address."""
    (server_folder,) = parse_qs(urlsplit(dsn).query)["host"]
    counter = StatementCounter(Path(server_folder) / SOCKET_NAME)
    server = await asyncio.start_unix_server(counter.serve, str(folder / SOCKET_NAME))
    try:
        yield counter, dsn.replace(server_folder, str(folder))
    finally:
        server.close()
        await counter.hang_up()
