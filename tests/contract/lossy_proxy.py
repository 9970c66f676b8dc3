"""A proxy before PostgreSQL that can lose the answer to a COMMIT, or all that is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

SOCKET_NAME = ".s.PGSQL.5432"
COMMIT = b"COMMIT\0"


class LossyProxy:
    """Passes everything on until `lose_next_commit` is set: then one answer never arrives.

    While `frozen`, nothing arrives at all, as with a server that is stopped.
    """

    def __init__(self, server: Path) -> None:
        self._server = server
        self._conversations: set[asyncio.Task[None]] = set()
        self.lose_next_commit = False
        self.frozen = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        from_server, to_server = await asyncio.open_unix_connection(str(self._server))
        answers = asyncio.create_task(_carry(from_server, writer))
        try:
            await self._carry_questions(reader, to_server, from_server, answers)
        finally:
            answers.cancel()
            await asyncio.wait([answers])
            to_server.close()
            writer.close()
            self._conversations.discard(task)

    async def _carry_questions(
        self,
        reader: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        answers: asyncio.Task[None],
    ) -> None:
        while data := await reader.read(65_536):
            if self.frozen:
                continue
            losing = self.lose_next_commit and COMMIT in data
            if losing:
                answers.cancel()
                await asyncio.wait([answers])
            to_server.write(data)
            await to_server.drain()
            if losing:
                self.lose_next_commit = False
                await from_server.read(65_536)  # the server has committed, and nobody hears of it
                return

    async def hang_up(self) -> None:
        """End every conversation."""
        for task in list(self._conversations):
            task.cancel()
        if self._conversations:
            await asyncio.wait(list(self._conversations))


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def lossy_proxy(dsn: str, folder: Path) -> AsyncIterator[tuple[LossyProxy, str]]:
    """A proxy before the server of the address given, and its own address."""
    (server_folder,) = parse_qs(urlsplit(dsn).query)["host"]
    proxy = LossyProxy(Path(server_folder) / SOCKET_NAME)
    server = await asyncio.start_unix_server(proxy.serve, str(folder / SOCKET_NAME))
    try:
        yield proxy, dsn.replace(server_folder, str(folder))
    finally:
        server.close()
        await proxy.hang_up()
        await server.wait_closed()
