"""Health of a role over HTTP: is it alive, and can it do its work; if not, why."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from tidemill.runtime.addresses import parse_endpoint

REQUEST_BYTES_MAX = 8_192
REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 10.0
ANSWER_BYTES_MAX = 65_536
REQUESTS_MAX = 50  # at once


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What a role says about itself; it is ready when there is no reason against it."""

    role: str
    reasons: list[str] = []
    notes: list[str] = []  # worth knowing, and no reason to send work elsewhere

    @property
    def ready(self) -> bool:
        """Whether it can do its work."""
        return not self.reasons


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an answer."""

    role: str
    live: bool = True
    ready: bool
    reasons: list[str]
    notes: list[str]


_BROKEN_OFF = (OSError, ValueError, EOFError, asyncio.LimitOverrunError)

Look: TypeAlias = Callable[[], Awaitable[Health]]


class HealthServer:
    """Answers GET /live and GET /ready, one request per connection, and nothing else."""

    def __init__(self, endpoint: str, look: Look) -> None:
        self.endpoint = parse_endpoint(endpoint)
        self._look = look
        self._server: asyncio.Server | None = None
        self._silent: list[asyncio.StreamWriter] = []  # they have not asked yet
        self._asking = 0

    async def start(self) -> None:
        """Listen; OSError when the address cannot be had."""
        host, port = self.endpoint
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        self.endpoint = self.endpoint._replace(port=self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening; safe to call twice."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Cancelled at the end of the process: Python 3.11 would tell it as an error.
            with contextlib.suppress(*_BROKEN_OFF, asyncio.CancelledError):
                writer.write(await self._answer(await self._head(reader, writer)))
                await writer.drain()
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if len(self._silent) >= REQUESTS_MAX:  # who says nothing makes room for who does
            self._silent.pop(0).transport.abort()
        self._silent.append(writer)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await reader.readuntil(b"\r\n\r\n")
        finally:
            with contextlib.suppress(ValueError):
                self._silent.remove(writer)

    async def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if path not in {"/live", "/ready"}:
            return _response("404 Not Found", {"error": "ask for /live or /ready"})
        if method != "GET":
            return _response("405 Method Not Allowed", {"error": "use GET"}, "Allow: GET\r\n")
        if path == "/live":  # at once: who waits for a store that is away lives all the same
            return _response("200 OK", {"live": True})
        if self._asking >= REQUESTS_MAX:
            return _response("503 Service Unavailable", {"error": "too many requests at once"})
        return await self._ready()

    async def _ready(self) -> bytes:
        self._asking += 1
        try:
            health = await self._look()
        finally:
            self._asking -= 1
        answer = HealthAnswer(
            role=health.role, ready=health.ready, reasons=health.reasons, notes=health.notes
        )
        return _response("200 OK" if health.ready else "503 Service Unavailable", answer)


def _response(status: str, body: object, more: str = "") -> bytes:
    data = msgspec.json.encode(body)
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        f"Cache-Control: no-store\r\nConnection: close\r\n{more}\r\n"
    )
    return head.encode("latin-1") + data


async def ask_health(endpoint: str) -> HealthAnswer:
    """What the role says that serves health or HTTP at `HOST:PORT`; OSError when none does."""
    host, port = parse_endpoint(endpoint)
    async with asyncio.timeout(ANSWER_SECONDS):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(await _ask(host, port, "/ready"), type=HealthAnswer)
        try:
            told = msgspec.json.decode(await _ask(host, port, "/health"), type=Health)
        except msgspec.DecodeError as error:
            raise OSError("something else than Tidemill answers there") from error
    return HealthAnswer(role=told.role, ready=told.ready, reasons=told.reasons, notes=told.notes)


async def _ask(host: str, port: int, path: str) -> bytes:
    """The body of an answer, as far as it is bounded."""
    name = f"[{host}]" if ":" in host else host
    head = f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection(host, port)
    answer = b""
    try:
        writer.write(head.encode("latin-1"))
        with contextlib.suppress(ConnectionError):  # what came before it tells who is there
            while len(answer) < ANSWER_BYTES_MAX and (piece := await reader.read(ANSWER_BYTES_MAX)):
                answer += piece
    finally:
        writer.close()
    return answer.partition(b"\r\n\r\n")[2]
