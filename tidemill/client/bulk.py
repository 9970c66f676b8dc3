"""Many starts at once: sent in pieces, each piece safe to send again, answers in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, TypeAlias

import msgspec

from tidemill.client.calls import Calls, place
from tidemill.client.connection import Request
from tidemill.protocol.resources import BulkItem, StartJob, StartRun
from tidemill.protocol.resources.bulk import NDJSON_MEDIA_TYPE

PIECE_ITEMS = 1_000
PIECE_BYTES = 4 * 1_048_576
PIECES_UNDER_WAY = 4
PATIENCE_SECONDS = 120.0

Item: TypeAlias = StartRun | StartJob | Mapping[str, Any]
_encoder = msgspec.json.Encoder()


class BulkCalls(Calls):
    """Runs and jobs by the thousand."""

    async def bulk(
        self,
        items: Iterable[Item],
        *,
        kind: Literal["jobs", "runs"] = "jobs",
        on_progress: Callable[[int], None] | None = None,
    ) -> AsyncIterator[BulkItem]:
        """Start everything in `items` and tell what became of each, in order.

        Items are read as they are sent, so there may be any number. Each has a key, of its own or
        made here, so a piece that is sent again starts nothing twice.
        """
        # One long request would do, but HTTP/1.1 clients send all before they read: the answers
        # would fill every buffer on the way, and both sides would wait for each other.
        pieces = self._pieces(items)
        under_way: deque[asyncio.Task[list[BulkItem]]] = deque()
        first = 0
        try:
            while True:
                for piece in islice(pieces, PIECES_UNDER_WAY - len(under_way)):
                    under_way.append(asyncio.create_task(self._send_piece(kind, piece)))
                if not under_way:
                    return
                answers = await under_way.popleft()
                for answer in answers:
                    yield msgspec.structs.replace(answer, index=first + answer.index)
                first += len(answers)
                if on_progress is not None:
                    on_progress(first)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _send_piece(self, kind: str, piece: bytes) -> list[BulkItem]:
        request = Request(
            method="POST",
            path=place(f"{kind}") + ":bulk",
            body=piece,
            headers={"Content-Type": NDJSON_MEDIA_TYPE, "Accept": NDJSON_MEDIA_TYPE},
            patience=PATIENCE_SECONDS,
        )
        response = await self.connection.call(request)
        return [
            self.connection.decode(line, BulkItem) for line in response.content.split(b"\n") if line
        ]

    def _pieces(self, items: Iterable[Item]) -> Iterator[bytes]:
        lines: list[bytes] = []
        size = 0
        for item in items:
            line = _encoder.encode(self._with_key(item))
            lines.append(line)
            size += len(line)
            if len(lines) >= PIECE_ITEMS or size >= PIECE_BYTES:
                yield b"\n".join(lines) + b"\n"
                lines, size = [], 0
        if lines:
            yield b"\n".join(lines) + b"\n"

    def _with_key(self, item: Item) -> Item:
        key = item.get("key") if isinstance(item, Mapping) else item.key
        if isinstance(key, str):
            return item
        fresh = self.connection.system.fresh_key()
        if isinstance(item, Mapping):
            return {**item, "key": fresh}
        return msgspec.structs.replace(item, key=fresh)
