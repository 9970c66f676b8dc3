"""Many connections that post the same request again and again, as cheaply as Python can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

END_OF_HEAD = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass
class Tally:
    """What came back."""

    statuses: dict[int, int] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    lost: int = 0  # connections that ended without an answer


class Posting:
    """A number of requests, shared by connections to one server."""

    def __init__(
        self, host: str, port: int, make: Callable[[int], bytes], *, keep_bodies: bool = False
    ) -> None:
        self.tally = Tally()
        self._address = (host, port)
        self._make = make
        self._keep = keep_bodies
        self._sent = 0
        self._count = 0

    async def run(self, count: int, connections: int) -> Tally:
        """Post `count` requests; ends early when every connection is lost."""
        self._count = self._sent + count
        loop = asyncio.get_running_loop()
        opened = [
            await loop.create_connection(lambda: _Connection(self), *self._address)
            for _ in range(connections)
        ]
        for _, one in opened:
            one.send()
        await asyncio.gather(*(one.done for _, one in opened))
        for transport, _ in opened:
            transport.close()
        return self.tally

    def next(self) -> bytes | None:
        """The next request, None when all are sent."""
        if self._sent >= self._count:
            return None
        self._sent += 1
        return self._make(self._sent - 1)

    def note(self, status: int, body: bytes) -> None:
        """Count an answer."""
        self.tally.statuses[status] = self.tally.statuses.get(status, 0) + 1
        if self._keep:
            self.tally.bodies.append(body)


class _Connection(asyncio.Protocol):
    def __init__(self, posting: Posting) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._posting = posting
        self._transport: asyncio.Transport | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self) -> None:
        request = self._posting.next()
        if request is None:
            self._finish()
        elif self._transport is not None:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(END_OF_HEAD)
        if not found:
            return
        place = head.lower().index(LENGTH) + len(LENGTH)
        length = int(head[place:].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self._buffer = b""
        self._posting.note(int(head[9:12]), rest)
        self.send()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.done.done():
            self._posting.tally.lost += 1
        self._finish()

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


def post_of(path: str, host: str, body: bytes, *headers: str) -> bytes:
    """A POST of JSON as bytes."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + END_OF_HEAD + body


__all__ = ["Posting", "Tally", "post_of"]
