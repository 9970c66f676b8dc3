"""A TCP proxy on loopback that can do to a connection what networks do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

CHUNK_BYTES = 65_536
HOST = "127.0.0.1"


class Proxy:
    """Carries connections to one address, until it is told to cut them or to let them hang."""

    def __init__(self, target: str) -> None:
        self.address = ""
        self.connections = 0  # so far
        self._host, _, self._port = target.rpartition(":")
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], _Connection] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.address = f"{HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def cut(self) -> int:
        """Reset every connection, as a network does that loses its state; return how many."""
        for connection in self._open.values():
            connection.abort()
        return len(self._open)

    def freeze(self) -> int:
        """From now on carry nothing on what is open, and tell nobody; new ones are carried."""
        for connection in self._open.values():
            connection.flowing.clear()
        return len(self._open)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections += 1
        try:
            there = await asyncio.open_connection(self._host, int(self._port))
        except OSError:
            writer.transport.abort()
            return
        self._open[task] = connection = _Connection((reader, writer), there)
        try:
            await connection.carry()
        except asyncio.CancelledError:
            # Nobody awaits this task, and asyncio's own callback must not see it cancelled.
            pass
        finally:
            connection.abort()
            del self._open[task]


class _Connection:
    def __init__(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._here = here
        self._there = there

    async def carry(self) -> None:
        """Until one side has ended."""
        ways = [
            asyncio.create_task(self._carry(self._here[0], self._there[1])),
            asyncio.create_task(self._carry(self._there[0], self._here[1])),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()

    def abort(self) -> None:
        """Reset both sides."""
        self._here[1].transport.abort()
        self._there[1].transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                # What was read while nothing flows is lost, like a packet that is dropped.
                await self.flowing.wait()
                writer.write(data)
                await writer.drain()
