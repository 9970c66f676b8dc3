"""Sees the runs of a load end, among whatever else the server does.

Everything that decides goes by the ids that the server answered with. Runs that are open are
listed oldest first, from the time of the load on: as long as one of ours is among them, the load is
not over. Pages without one of ours are not looked at twice. Those that failed are listed in the
same way once. Counting on the way is only for people: counters of the server, which know nothing of
whose tasks they count.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import msgspec

from bench.load.tally import Tally
from bench.load.wire import Answer, Target, Wire

OPEN = ("PENDING", "RUNNING", "PAUSED")
UNSUCCESSFUL = ("FAILED", "CANCELLED")
SKEW = timedelta(seconds=60)  # the clock that draws ids and that of the database may differ
PAGE = 500
PAGE_FIRST = 10  # as a rule the oldest open run is one of ours
# A look may cost so much: what waits for the next one is a multiple of what the last one took.
PATIENCE = 20.0
LOOK_SECONDS_MIN = 0.05
LOOK_SECONDS_MAX = 2.0
COUNT_SECONDS_MIN = 1.0
COUNT_SECONDS_MAX = 10.0
TRIES_MAX = 30
PASSING = frozenset({0, 429, 500, 502, 503, 504})
WAIT_SECONDS = 1.0
WAIT_SECONDS_MAX = 10.0

_COUNTED = re.compile(rb"^jobs_(success|failed)_total ([0-9.e+]+)$", re.MULTILINE)


class Unreadable(Exception):
    """The server cannot be asked; the text says why."""


class _Run(msgspec.Struct):
    id: str


class _Runs(msgspec.Struct):
    items: list[_Run]
    next: str | None = None


class Watcher:
    """Asks over one connection of its own."""

    def __init__(self, target: Target, tally: Tally) -> None:
        self._target = target
        self._tally = tally
        self._wire: Wire | None = None
        self._lock = asyncio.Lock()  # one request at a time
        self.place: str | None = None  # behind it are the pages that are still worth a look
        self._counted_before = (0, 0)

    async def begin(self) -> None:
        """Read what the counters say before the first item."""
        self._counted_before = await self._counters()

    async def until_ended(self) -> None:
        """Return when every run that was started has ended."""
        while True:
            begin = time.monotonic()
            if not await self._any_open():
                return
            taken = time.monotonic() - begin
            await asyncio.sleep(_pause(taken, LOOK_SECONDS_MIN, LOOK_SECONDS_MAX))

    async def keep_counting(self) -> None:
        """Follow the counters of the server, until cancelled."""
        while True:
            begin = time.monotonic()
            succeeded, failed = await self._counters()
            failed -= self._counted_before[1]
            ended = (succeeded - self._counted_before[0]) // self._tally.load.tasks_each + failed
            self._tally.count(min(ended, self._tally.submitted), failed)
            taken = time.monotonic() - begin
            await asyncio.sleep(_pause(taken, COUNT_SECONDS_MIN, COUNT_SECONDS_MAX))

    async def settle(self) -> None:
        """Count exactly what became of runs that have all ended."""
        failed = 0
        async for page in self._pages(UNSUCCESSFUL):
            failed += self._own(page)
        self._tally.finished, self._tally.failed = self._tally.submitted, failed
        self._tally.exact = True

    def close(self) -> None:
        """Hang up."""
        if self._wire is not None:
            self._wire.close()

    async def _any_open(self) -> bool:
        async for page in self._pages(OPEN, self.place):
            if self._own(page):
                return True
            self.place = page.next or self.place
        return False

    def _own(self, page: _Runs) -> int:
        return sum(run.id in self._tally.ids for run in page.items)

    async def _pages(self, states: Sequence[str], place: str | None = None) -> AsyncIterator[_Runs]:
        if not self._tally.ids:
            return
        fields: list[tuple[str, Any]] = [("state", state) for state in states]
        fields += [("sort", "created"), ("created_after", self._since.isoformat())]
        limit = PAGE_FIRST
        while True:
            paging = [("limit", limit), *([("after", place)] if place else [])]
            answer = await self._get("/v1/runs?" + urlencode([*fields, *paging]))
            page = msgspec.json.decode(answer.body, type=_Runs)
            yield page
            place, limit = page.next, PAGE
            if place is None:
                return

    @cached_property
    def _since(self) -> datetime:
        """A little before the first run of ours; ids are UUIDv7 and begin with their time."""
        milliseconds = int(min(self._tally.ids).replace("-", "")[:12], 16)
        return datetime.fromtimestamp(milliseconds / 1_000, UTC) - SKEW

    async def _counters(self) -> tuple[int, int]:
        answer = await self._get("/metrics")
        counts = {name: int(float(value)) for name, value in _COUNTED.findall(answer.body)}
        return counts.get(b"success", 0), counts.get(b"failed", 0)

    async def _get(self, path: str) -> Answer:
        """Ask until the server has time; Unreadable when it does not let us, or stays away."""
        async with self._lock:
            for _ in range(TRIES_MAX):
                answer = await self._try(path)
                if answer.status == 200:
                    return answer
                if answer.status not in PASSING:
                    break
                await asyncio.sleep(min(answer.retry_after or WAIT_SECONDS, WAIT_SECONDS_MAX))
        reason = f"status {answer.status}" if answer.status else answer.body.decode()
        raise Unreadable(f"GET {path.partition('?')[0]}: {reason}")

    async def _try(self, path: str) -> Answer:
        """One request; status 0 when there was no answer."""
        try:
            return await (await self._connected()).ask(self._target.get(path))
        except OSError as error:
            return Answer(0, str(error).encode(), None)

    async def _connected(self) -> Wire:
        if self._wire is None or not self._wire.open:
            self._wire = await self._target.connect()
        return self._wire


def _pause(taken: float, least: float, most: float) -> float:
    return min(max(least, taken * PATIENCE), most)
