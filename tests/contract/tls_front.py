"""TLS before a server that does not speak it itself."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.servers.listening import listening


@asynccontextmanager
async def tls_front(port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """A port that speaks TLS and carries everything to another one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_carry(reader, to_server), _carry(from_server, writer))

    async with listening(serve, context) as own_port:
        yield own_port


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()
