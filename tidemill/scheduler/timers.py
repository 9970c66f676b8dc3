"""Timers: what time alone makes happen, found in the store and handed to turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Due
from tidemill.domain.identifiers import SECOND
from tidemill.domain.task_run import Reason
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.inbox import RunItem, TaskItem

log = logging.getLogger(__name__)

NAP_SECONDS_MIN = 0.005


class Timers:
    """Backoffs that are over, deadlines that have passed, runs that were left half done."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._next_at: float | None = None
        self._sooner = asyncio.Event()

    def set(self, due_in_micros: int) -> None:
        """A turn has set a timer: look then, rather than at the next scan."""
        at = self._desk.clock.monotonic() + due_in_micros / SECOND
        if self._next_at is None or at < self._next_at:
            self._next_at = at
            self._sooner.set()

    async def watch_due(self) -> None:
        """Look for due tasks and runs at every scan, and whenever a known timer runs out."""
        while True:
            await self._nap()
            self._next_at = None
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
        await self._desk.inbox.put(
            TaskItem(token=due.token, event=Due(due.token.epoch, due.state)) for due in tasks
        )
        await self._desk.inbox.put(RunItem(run_id=run_id, stop=Reason.TIMEOUT) for run_id in runs)
        return len(tasks) + len(runs)

    async def scan_unsettled(self) -> int:
        """Note runs with work left for a turn; return how many."""
        runs = await self._desk.store.watch.unsettled_runs(self._desk.config.scan_items_max)
        await self._desk.inbox.put(RunItem(run_id=run_id) for run_id in runs)
        return len(runs)

    async def _nap(self) -> None:
        """Sleep until the next scan or the first known timer, whichever comes first."""
        scan_at = self._desk.clock.monotonic() + self._desk.config.scan_seconds
        while True:
            self._sooner.clear()
            until = min(scan_at, scan_at if self._next_at is None else self._next_at)
            seconds = max(until - self._desk.clock.monotonic(), NAP_SECONDS_MIN)
            try:
                async with asyncio.timeout(seconds):
                    await self._sooner.wait()
            except TimeoutError:
                return

    async def _guarded(self, scan: Callable[[], Awaitable[int]]) -> None:
        try:
            await scan()
        except Unavailable as error:
            log.warning("timers could not look: %s", error)
