"""Server-sent events: read from a stream that may break, and taken up behind the last one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from tidemill.client.connection import Connection, Request
from tidemill.domain.errors import RateLimited, TidemillError, Unavailable
from tidemill.protocol.resources import EventView, GapView
from tidemill.protocol.resources.events import EVENT_STREAM_MEDIA_TYPE, GAP_EVENT

MESSAGE_BYTES_MAX = 4 * 1_048_576
FAILURES_MAX = 10
"""So many connections in a row may bring nothing before somebody is told."""


@dataclass(slots=True)
class Message:
    """One message of a stream."""

    id: str = ""
    event: str = ""
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What to follow, and from where."""

    request: Request
    after: str | None = None
    on_gap: Callable[[GapView], None] | None = None


def follow(connection: Connection, following: Following) -> AsyncIterator[EventView]:
    """Events without end; Unavailable when the server stays away."""
    return _Follower(connection, following).events()


class _Follower:
    """Knows how far it has come."""

    def __init__(self, connection: Connection, following: Following) -> None:
        self._connection = connection
        self._following = following
        self._last = following.after
        self._failures = 0
        self._trouble: TidemillError | None = None

    async def events(self) -> AsyncIterator[EventView]:
        """One stream after the other."""
        while True:
            async with aclosing(self._stream()) as stream:
                async for event in stream:
                    yield event
            self._failures += 1
            if self._failures > FAILURES_MAX:
                server = self._connection.place.server
                raise self._trouble or Unavailable(f"{server} ends the stream at once")
            await self._connection.pause(self._failures)

    async def _stream(self) -> AsyncGenerator[EventView, None]:
        self._trouble = None
        request = _request(self._following.request, self._last)
        try:
            async with self._connection.stream(request) as pieces:
                async for event in self._events_in(pieces):
                    yield event
        except (Unavailable, RateLimited) as error:
            self._trouble = error

    async def _events_in(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[EventView]:
        async for message in messages(pieces):
            self._last, self._failures = message.id or self._last, 0
            if message.event == GAP_EVENT:
                self._tell_gap(self._connection.decode(message.data, GapView))
            elif message.data:
                yield self._connection.decode(message.data, EventView)

    def _tell_gap(self, gap: GapView) -> None:
        if self._following.on_gap is not None:
            self._following.on_gap(gap)


async def messages(pieces: AsyncIterator[bytes]) -> AsyncIterator[Message]:
    """The messages in a stream of bytes; comments keep the line open and mean nothing."""
    message = Message()
    async for line in _lines(pieces):
        if not line:
            if message.data or message.id:  # an id alone says how far the stream has come
                yield message
            message = Message()
            continue
        name, _, value = line.partition(b":")
        _take(message, name, value.removeprefix(b" "))


def _take(message: Message, name: bytes, value: bytes) -> None:
    match name:
        case b"id":
            message.id = value.decode()
        case b"event":
            message.event = value.decode()
        case b"data":
            message.data += value if not message.data else b"\n" + value


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    # By hand: JSON may hold characters that text readers take for the end of a line.
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
        if len(rest) > MESSAGE_BYTES_MAX:
            raise TidemillError(f"a line of the stream is longer than {MESSAGE_BYTES_MAX:,} bytes")


def _request(request: Request, last: str | None) -> Request:
    headers = {"Accept": EVENT_STREAM_MEDIA_TYPE}
    if last is not None:
        headers["Last-Event-ID"] = last
    return replace(request, headers=headers)
