"""Timers: what time alone makes happen, found in the store and handed to turns."""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import Awaitable, Callable, Iterable

from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Due
from tidemill.domain.identifiers import SECOND
from tidemill.domain.task_run import Reason
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.inbox import RunItem, TaskItem

log = logging.getLogger(__name__)

NAP_SECONDS_MIN = 0.005
TICKS = 100  # a second: timers closer than that to each other are one
FULL_SCAN_SECONDS = 0.1


class Timers:
    """Backoffs that are over, deadlines that have passed, runs that were left half done."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: list[int] = []  # a heap of ticks, by this process's steady clock
        self._ticks: set[int] = set()  # the same, to hold each once
        self._full = False  # the last scan found more than it could tell
        self._sooner = asyncio.Event()

    def set(self, due_in_micros: Iterable[int]) -> None:
        """A turn has set timers: look then, rather than at the next scan.

        Those of the far future are left to the scans: what waits for long may wait a second more.
        """
        now = self._desk.clock.monotonic()
        horizon = self._desk.config.timer_horizon_seconds * SECOND
        first = self._known[0] if self._known else None
        for micros in due_in_micros:
            tick = math.ceil((now + micros / SECOND) * TICKS)
            if micros <= horizon and tick not in self._ticks:
                self._ticks.add(tick)
                heapq.heappush(self._known, tick)
        if self._known and self._known[0] != first:
            self._sooner.set()

    async def watch_due(self) -> None:
        """Look for due tasks and runs at every scan, and whenever a known timer runs out."""
        while True:
            await self._nap()
            await self._guarded(self.scan_due)

    async def watch_unsettled(self) -> None:
        """Look for runs that another scheduler left half done, and at first for our own."""
        while True:
            await self._guarded(self.scan_unsettled)
            await self._desk.clock.sleep(self._desk.config.sweep_seconds)

    async def scan_due(self) -> int:
        """Note due tasks and runs for the next turn; return how many."""
        limit = self._desk.config.scan_items_max
        tasks = await self._desk.store.watch.due_tasks(limit)
        runs = await self._desk.store.watch.due_runs(limit)
        self._desk.inbox.offer(
            TaskItem(token=due.token, event=Due(due.token.epoch, due.state)) for due in tasks
        )
        self._desk.inbox.offer(RunItem(run_id=run_id, stop=Reason.TIMEOUT) for run_id in runs)
        self._full = limit in {len(tasks), len(runs)}
        return len(tasks) + len(runs)

    async def scan_unsettled(self) -> int:
        """Note runs with work left for a turn; return how many."""
        runs = await self._desk.store.watch.unsettled_runs(self._desk.config.scan_items_max)
        self._desk.inbox.go_on(runs)
        return len(runs)

    async def _nap(self) -> None:
        """Sleep until the next scan or the first known timer, whichever comes first."""
        pause = FULL_SCAN_SECONDS if self._full else self._desk.config.scan_seconds
        scan_at = self._desk.clock.monotonic() + pause
        while True:
            self._sooner.clear()
            until = min(scan_at, self._known[0] / TICKS) if self._known else scan_at
            seconds = max(until - self._desk.clock.monotonic(), NAP_SECONDS_MIN)
            try:
                async with asyncio.timeout(seconds):
                    await self._sooner.wait()
            except TimeoutError:
                self._forget_past()
                return

    def _forget_past(self) -> None:
        now = self._desk.clock.monotonic() * TICKS
        while self._known and self._known[0] <= now:
            self._ticks.discard(heapq.heappop(self._known))

    async def _guarded(self, scan: Callable[[], Awaitable[int]]) -> None:
        try:
            await scan()
        except Unavailable as error:
            log.warning("timers could not look: %s", error)
