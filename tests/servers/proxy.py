"""A proxy before PostgreSQL, on a unix socket: what passes can be counted, held up or lost."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

SOCKET_NAME = ".s.PGSQL.5432"


class Line(NamedTuple):
    """One connection to the server; `answers` carries back what it says."""

    to_server: asyncio.StreamWriter
    from_server: asyncio.StreamReader
    answers: asyncio.Task[None]


class Proxy(ABC):
    """Carries connections; what becomes of questions is for each kind of proxy to say."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._conversations: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def carry_questions(self, reader: asyncio.StreamReader, line: Line) -> None:
        """Pass on what the client asks, until it has nothing more to ask."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        from_server, to_server = await asyncio.open_unix_connection(str(self._server))
        answers = asyncio.create_task(_carry(from_server, writer))
        try:
            await self.carry_questions(reader, Line(to_server, from_server, answers))
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


P = TypeVar("P", bound=Proxy)


@asynccontextmanager
async def proxied(
    make: Callable[[Path], P], dsn: str, folder: Path
) -> AsyncIterator[tuple[P, str]]:
    """A proxy before the server of the address given, and its own address."""
    (server_folder,) = parse_qs(urlsplit(dsn).query)["host"]
    proxy = make(Path(server_folder) / SOCKET_NAME)
    server = await asyncio.start_unix_server(proxy.serve, str(folder / SOCKET_NAME))
    try:
        yield proxy, dsn.replace(server_folder, str(folder))
    finally:
        server.close()
        await proxy.hang_up()
        await server.wait_closed()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
