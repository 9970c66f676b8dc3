"""A small server inside the test's own process."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A port of the loopback; a connection is let go however its conversation ended."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # whoever called has hung up, or the test is over
        finally:
            writer.close()

    async with await asyncio.start_server(converse, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]
