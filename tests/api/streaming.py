"""A client of streams without a network: the answer is read while the application writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.types import Message

from tests.api.stage import BASE_URL
from tidemill.api.app import Application


class EventStream:
    """Messages of a stream of events, as they arrive."""

    def __init__(self, sent: asyncio.Queue[Message]) -> None:
        self.status = 0
        self.comments: list[str] = []
        self._sent = sent
        self._rest = b""

    async def begin(self) -> None:
        """Read the beginning of the answer."""
        self.status = (await self._sent.get())["status"]

    async def message(self) -> dict[str, Any] | None:
        """The next message with data: `id`, `event`, `data`; None at the end of the stream."""
        while True:
            block = await self._block()
            if block is None:
                return None
            fields = dict(line.partition(": ")[::2] for line in block.split("\n"))
            self.comments += [line for line in block.split("\n") if line.startswith(":")]
            if "data" in fields:
                data = msgspec.json.decode(fields["data"])
                return {"id": fields["id"], "event": fields.get("event"), "data": data}

    async def _block(self) -> str | None:
        while b"\n\n" not in self._rest:
            piece = await self._sent.get()
            self._rest += piece.get("body", b"")
            if not piece.get("more_body"):
                return None
        block, _, self._rest = self._rest.partition(b"\n\n")
        return block.decode()


@asynccontextmanager
async def streaming(
    app: Application, path: str, query: str = "", headers: Mapping[str, str] | None = None
) -> AsyncIterator[EventStream]:
    """Ask for a stream; leaving the block is leaving the stream."""
    sent: asyncio.Queue[Message] = asyncio.Queue()
    gone = asyncio.Event()
    told = False

    async def receive() -> Message:
        nonlocal told
        if not told:
            told = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    given = {"host": BASE_URL.removeprefix("http://"), **(headers or {})}
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "scheme": "http",
        "headers": [(name.lower().encode(), text.encode()) for name, text in given.items()],
        "client": ("127.0.0.1", 1),
    }
    serving = asyncio.create_task(app(scope, receive, sent.put))
    stream = EventStream(sent)
    try:
        async with asyncio.timeout(30):
            await stream.begin()
            yield stream
    finally:
        gone.set()
        async with asyncio.timeout(5):
            await serving
