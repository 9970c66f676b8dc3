"""One HTTP connection that carries one request at a time, as cheaply as Python can."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from httptools import HttpResponseParser

JSON = "application/json"
NDJSON = "application/x-ndjson"
CONNECT_SECONDS_MAX = 10.0
ANSWER_SECONDS_MAX = 120.0


class Answer(NamedTuple):
    """What came back, as far as a load test looks at it."""

    status: int
    body: bytes
    retry_after: float | None


class BadUrl(ValueError):
    """An address that is no server's."""


@dataclass(frozen=True)
class Target:
    """Where a server is, and the headers that every request to it carries."""

    url: str
    host: str
    port: int
    prefix: str
    tls: bool
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold a key

    @classmethod
    def of(cls, url: str, headers: Mapping[str, str] | None = None) -> Target:
        """The server of an address; BadUrl when it is none."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise BadUrl(f"{url!r} is no server: {error}") from error
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
            raise BadUrl(f"{url!r} is no server: write http://HOST:PORT or https://HOST")
        tls = parts.scheme == "https"
        return cls(
            url=url.rstrip("/"),
            host=parts.hostname,
            port=port or (443 if tls else 80),
            prefix=parts.path.rstrip("/"),
            tls=tls,
            headers={"Host": parts.netloc, **(headers or {})},
        )

    def get(self, path: str) -> bytes:
        """A GET as bytes."""
        return self._head("GET", path)

    def post(self, path: str, body: bytes, media_type: str = JSON) -> bytes:
        """A POST as bytes; its answer may be of the same media type."""
        extra = {"Content-Type": media_type, "Accept": media_type, "Content-Length": len(body)}
        return self._head("POST", path, extra) + body

    async def connect(self) -> Wire:
        """Open a connection; OSError when that fails, TimeoutError among them."""
        context = ssl.create_default_context() if self.tls else None
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            _, wire = await asyncio.get_running_loop().create_connection(
                Wire, self.host, self.port, ssl=context
            )
        return wire

    def _head(self, method: str, path: str, extra: Mapping[str, object] | None = None) -> bytes:
        fields = {**self.headers, **(extra or {})}
        lines = [f"{method} {self.prefix}{path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


class Wire(asyncio.Protocol):
    """Sends a request and waits for its answer; ConnectionError when the other side hangs up."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._parser = HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._retry_after: float | None = None

    @property
    def open(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> Answer:
        """Send one request; the next one waits for its answer."""
        if not self.open or self._transport is None:
            raise ConnectionResetError("the server closed the connection")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._answer = answer
        # A timer of the loop costs less than a timeout of the task, and there are thousands.
        patience = loop.call_later(ANSWER_SECONDS_MAX, self.close)
        try:
            self._transport.write(request)
            return await answer
        finally:
            patience.cancel()
            self._answer = None

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by shape alone

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        self._parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the loop."""
        self._transport = None
        if self._answer is not None and not self._answer.done():
            lost = ConnectionResetError("the server closed the connection, or did not answer")
            self._answer.set_exception(lost)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        if name.lower() == b"retry-after" and value.isdigit():
            self._retry_after = float(value)

    def on_body(self, data: bytes) -> None:
        """Called by the parser."""
        self._parts.append(data)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        answer = Answer(self._parser.get_status_code(), b"".join(self._parts), self._retry_after)
        self._parts, self._retry_after = [], None
        if not self._parser.should_keep_alive():
            self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
