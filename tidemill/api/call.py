"""One request as its handler sees it: who asks, about which namespace, and what was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

from starlette.requests import Request
from starlette.types import Receive, Scope

from tidemill.api.decoding import decode_json
from tidemill.api.problems import HttpError
from tidemill.api.services import Services
from tidemill.domain.principals import ANONYMOUS, Principal

BODY_BYTES_MAX = 10 * 1024 * 1024
LINE_BYTES_MAX = 1024 * 1024
SLOW_SECONDS = 1.0
"""Whose body takes longer must still be welcome at its end: it can be drawn out for days."""

T = TypeVar("T")


class Disconnected(Exception):
    """The client went away in the middle of its request."""


class Call:
    """A request that was let through."""

    __slots__ = (
        "headers",
        "namespace",
        "principal",
        "readmit",
        "receive",
        "request_id",
        "scope",
        "services",
    )

    def __init__(
        self, services: Services, scope: Scope, receive: Receive, headers: Mapping[bytes, bytes]
    ) -> None:
        self.services = services
        self.scope = scope
        self.headers = headers
        self.receive = receive
        self.principal: Principal
        self.namespace: str
        self.request_id: str
        self.readmit: Callable[[], Awaitable[None]] = _nothing  # do the credentials still hold?

    @property
    def request(self) -> Request:
        """The request as Starlette shows it."""
        return Request(self.scope, self.receive)

    @property
    def peer(self) -> str:
        """The address that the request came from; empty over a unix socket."""
        client = self.scope.get("client")
        return client[0] if client else ""

    @property
    def asker(self) -> str:
        """Who asks and from where, as far as that is known: for the log."""
        principal = getattr(self, "principal", ANONYMOUS)  # not set before it is recognised
        return f"{principal.id} at {self.peer or 'this machine'}"

    @property
    def media_type(self) -> str:
        """The media type of the body, without parameters; empty when none was named."""
        return media_type_of(self.headers)

    def header(self, name: str) -> str | None:
        """A request header; of several with one name, the last."""
        value = self.headers.get(_as_sent(name))
        return None if value is None else value.decode("latin-1")

    def require_match(self, etag: str) -> None:
        """Refuse a change of something that is no longer as the client has seen it."""
        wanted = self.header("if-match")
        if wanted is not None and not matches(wanted, etag):
            message = f"it has changed meanwhile: it is {etag} now; read it and try again"
            raise HttpError(412, message, code="PRECONDITION_FAILED")

    async def body_bytes(self) -> bytes:
        """The whole body, within the bound; the credentials hold at its end, too."""
        clock = self.services.clock
        begun = clock.monotonic()
        body = await self._whole_body()
        if clock.monotonic() - begun >= SLOW_SECONDS:
            await self.readmit()
        return body

    async def _whole_body(self) -> bytes:
        declared = self.headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > BODY_BYTES_MAX:
            raise _too_large()
        message = await self._next()
        if not message.get("more_body"):  # the usual case: it came in one piece
            return _bounded(cast(bytes, message.get("body", b"")))
        parts = bytearray(message.get("body", b""))
        while message.get("more_body"):
            _bounded(parts)
            message = await self._next()
            parts += message.get("body", b"")
        return bytes(_bounded(parts))

    async def decode(self, kind: type[T]) -> T:
        """The body as a value; InvalidInput with everything that is wrong with it."""
        return decode_json(await self.body_bytes(), kind)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes in, without a bound on its size."""
        more = True
        while more:
            message = await self._next()
            more = bool(message.get("more_body"))
            yield message.get("body", b"")

    async def lines(self, line_bytes_max: int = LINE_BYTES_MAX) -> AsyncIterator[bytes]:
        """The lines of an NDJSON body as they come in, without empty ones; each within a bound."""
        rest = bytearray()
        async for chunk in self.chunks():
            rest += chunk
            if b"\n" in chunk:  # looked for in what is new: a long line in small pieces is cheap
                *whole, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in _bounded_lines(whole, line_bytes_max):
                    yield line
            _check_line(rest, line_bytes_max)
        for line in _bounded_lines([rest], line_bytes_max):
            yield line

    async def _next(self) -> Mapping[str, Any]:
        message = await self.receive()  # the server leaves who is silent for too long
        if message["type"] == "http.disconnect":
            raise Disconnected
        return message


async def _nothing() -> None:
    """Where everybody is let in, nobody needs to be let in again."""


@lru_cache(maxsize=256)
def _as_sent(name: str) -> bytes:
    return name.lower().encode("latin-1")


def media_type_of(headers: Mapping[bytes, bytes]) -> str:
    """`application/json` of `Application/JSON; charset=utf-8`."""
    value = headers.get(b"content-type")
    return "" if value is None else value.partition(b";")[0].strip().lower().decode("latin-1")


def matches(wanted: str, etag: str) -> bool:
    """Whether an If-Match or If-None-Match names this tag."""
    tags = {tag.strip().removeprefix("W/") for tag in wanted.split(",")}
    return "*" in tags or etag.removeprefix("W/") in tags


Body = TypeVar("Body", bytes, bytearray)


def _bounded(body: Body) -> Body:
    if len(body) > BODY_BYTES_MAX:
        raise _too_large()
    return body


def _too_large() -> HttpError:
    text = f"the body is larger than {BODY_BYTES_MAX:,} bytes: send less at once, or NDJSON"
    return HttpError(413, text, code="TOO_LARGE", headers={"Connection": "close"})


def _bounded_lines(lines: Iterable[bytes | bytearray], line_bytes_max: int) -> Iterator[bytes]:
    for line in lines:
        _check_line(line, line_bytes_max)
        if stripped := bytes(line.strip()):
            yield stripped


def _check_line(line: bytes | bytearray, line_bytes_max: int) -> None:
    if len(line) > line_bytes_max:
        text = f"a line is larger than {line_bytes_max:,} bytes"
        raise HttpError(413, text, code="TOO_LARGE", headers={"Connection": "close"})
