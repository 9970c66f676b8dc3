"""Reaching an application in this process: as over a network, streams included, without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import httpx

Message: TypeAlias = MutableMapping[str, Any]
App: TypeAlias = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[Message]],
        Callable[[Message], Awaitable[None]],
    ],
    Awaitable[None],
]

PIECES_MAX = 100
"""How many pieces of an answer may wait for their reader."""


class AppTransport(httpx.AsyncBaseTransport):
    """Hands requests to an ASGI application.

    httpx has one as well, which waits for the whole answer: a stream of events has no end.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Start the application on one request; return when it has begun to answer."""
        exchange = _Exchange(await request.aread())
        exchange.task = asyncio.create_task(self._run(_scope(request), exchange))
        await exchange.begun.wait()
        if exchange.status is None:
            await exchange.aclose()
            raise httpx.RemoteProtocolError("the application gave no answer", request=request)
        return httpx.Response(exchange.status, headers=exchange.headers, stream=exchange)

    async def _run(self, scope: MutableMapping[str, Any], exchange: _Exchange) -> None:
        try:
            await self._app(scope, exchange.receive, exchange.send)
        finally:
            exchange.begun.set()
            await exchange.pieces.put(None)


class _Exchange(httpx.AsyncByteStream):
    """One request and its answer."""

    def __init__(self, body: bytes) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.begun = asyncio.Event()
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue(PIECES_MAX)
        self.task: asyncio.Task[None] | None = None
        self._body: bytes | None = body
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        """The request, once; then nothing until the client leaves."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", []))
            self.begun.set()
        elif message["type"] == "http.response.body" and (piece := message.get("body", b"")):
            await self.pieces.put(piece)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self.pieces.get()) is not None:
            yield piece
        await self._end()

    async def aclose(self) -> None:
        """Leave; the application is told, and ended if it does not listen."""
        self._gone.set()
        await self._end()

    async def _end(self) -> None:
        task, self.task = self.task, None
        if task is None:
            return
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _scope(request: httpx.Request) -> MutableMapping[str, Any]:
    path = request.url.raw_path.partition(b"?")[0]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": None,
        "root_path": "",
    }
