"""Submits the items of a load over a number of connections, and waits where the server asks to."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Sequence

import msgspec

from bench.load.tally import Tally
from bench.load.wire import NDJSON, Answer, Target, Wire

PIECE_LINES = 1_000
WAIT_STATUSES = frozenset({429, 503})
WAIT_SECONDS = 1.0
WAIT_SECONDS_MAX = 60.0
ERRORS_MAX = 1_000
RECONNECTS_MAX = 10
RECONNECT_SECONDS = 1.0

_ID = re.compile(rb'"id":"([^"]+)"')


class GivenUp(Exception):
    """Going on is of no use; the text says why."""


class _Problem(msgspec.Struct):
    status: int = 0
    detail: str = ""


class _Item(msgspec.Struct):
    index: int
    id: str | None = None
    problem: _Problem | None = None


class Submitter:
    """Shares the items of one load among connections."""

    def __init__(self, target: Target, tally: Tally, *, bulk: bool) -> None:
        self._target = target
        self._tally = tally
        self._bulk = bulk
        self._next = 0
        self._again: deque[int] = deque()  # lines of a bulk request that were asked to wait
        self._single: dict[bytes, bytes] = {}

    async def run(self, connections: int) -> None:
        """Submit everything; GivenUp when the server is gone, or refuses too much."""
        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(connections):
                    lanes.create_task(self._lane())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        self._tally.all_submitted = time.monotonic()

    async def _lane(self) -> None:
        wire = await self._connect()
        try:
            while numbers := self._take():
                if not wire.open:
                    wire = await self._connect()
                await self._submit(wire, numbers)
        finally:
            wire.close()

    def _take(self) -> Sequence[int]:
        """The numbers of the next items; none when all are under way."""
        size = PIECE_LINES if self._bulk else 1
        if self._again:
            return [self._again.popleft() for _ in range(min(size, len(self._again)))]
        first = self._next
        self._next = min(first + size, self._tally.load.count)
        return range(first, self._next)

    async def _submit(self, wire: Wire, numbers: Sequence[int]) -> None:
        request = self._request(numbers)
        while True:
            begin = time.monotonic()
            try:
                answer = await wire.ask(request)
            except ConnectionError as error:
                self._refuse(len(numbers), str(error))
                return
            if answer.status not in WAIT_STATUSES:
                break
            self._tally.held_back += 1
            await asyncio.sleep(_wait(answer))
            if not wire.open:
                self._again.extend(numbers)
                return
        self._tally.latencies.append(time.monotonic() - begin)
        await self._read(answer, numbers)

    def _request(self, numbers: Sequence[int]) -> bytes:
        load = self._tally.load
        if self._bulk:
            lines = b"\n".join([load.line(number) for number in numbers])
            return self._target.post(load.bulk_path, lines, NDJSON)
        body = load.body(numbers[0])
        request = self._single.get(body)
        if request is None:  # there are no more than two kinds
            request = self._single[body] = self._target.post(load.path, body)
        return request

    async def _read(self, answer: Answer, numbers: Sequence[int]) -> None:
        if answer.status not in {200, 201}:
            self._refuse(len(numbers), _reason(answer))
            return
        found = _ID.findall(answer.body)
        if len(found) == len(numbers):
            self._tally.ids.update(one.decode() for one in found)
        elif self._bulk:
            await self._read_items(answer.body, numbers)
        else:
            self._refuse(1, "an answer without an id")

    async def _read_items(self, body: bytes, numbers: Sequence[int]) -> None:
        """Not every line was taken: each has its own answer."""
        items = [msgspec.json.decode(line, type=_Item) for line in body.splitlines() if line]
        waiting = [
            numbers[item.index]
            for item in items
            if item.problem is not None and item.problem.status in WAIT_STATUSES
        ]
        self._tally.ids.update(item.id for item in items if item.id is not None)
        refused = [one for one in items if one.problem is not None]
        lost = len(numbers) - sum(one.id is not None for one in items) - len(waiting)
        if lost:
            texts = [one.problem.detail for one in refused if one.problem is not None]
            self._refuse(lost, texts[0] if texts else "the answer broke off")
        if waiting:
            self._tally.held_back += 1
            await asyncio.sleep(WAIT_SECONDS)
            self._again.extend(waiting)

    def _refuse(self, items: int, text: str) -> None:
        self._tally.note_error(items, text)
        if self._tally.errors >= min(ERRORS_MAX, self._tally.load.count):
            raise GivenUp(f"{self._tally.errors:,} errors: {self._tally.first_error}")

    async def _connect(self) -> Wire:
        for _ in range(RECONNECTS_MAX):
            try:
                return await self._target.connect()
            except OSError as error:
                reason = str(error)
            await asyncio.sleep(RECONNECT_SECONDS)
        raise GivenUp(f"{self._target.url} is gone: {reason}")


def _wait(answer: Answer) -> float:
    return min(WAIT_SECONDS if answer.retry_after is None else answer.retry_after, WAIT_SECONDS_MAX)


def _reason(answer: Answer) -> str:
    try:
        text = msgspec.json.decode(answer.body, type=_Problem).detail
    except msgspec.MsgspecError:
        text = answer.body[:200].decode(errors="replace")
    return f"status {answer.status}: {text}"
