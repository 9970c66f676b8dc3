"""Virtual time: a clock that stands still while code runs, and jumps when everybody waits.

A test that waits for an hour of backoff takes no time. Where code waits for something real, a
thread or a socket, virtual time passes as real time does.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tidemill.domain.errors import TidemillError
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.runtime.system import SystemClock

SECONDS_MAX = 30 * 86_400.0
START = datetime(2030, 1, 1, 12, tzinfo=UTC)


class NothingHappens(TidemillError):
    """Everybody waits for something that never comes: a task hangs without a timer."""


class VirtualClock:
    """The time of a test; `seconds` have passed since it was made, at most `seconds_max`."""

    def __init__(self, start: datetime = START, *, seconds_max: float = SECONDS_MAX) -> None:
        self._start = round(start.timestamp() * SECOND)
        self._seconds_max = seconds_max
        self.seconds = 0.0

    def now(self) -> Moment:
        """The wall clock."""
        return self._start + round(self.seconds * SECOND)

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time, on a loop of this clock."""
        await asyncio.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass; NothingHappens, once, when there was more of it than a test may take."""
        self.seconds += seconds
        if self.seconds > self._seconds_max:
            self._seconds_max = math.inf  # what is left must be able to end
            raise NothingHappens(f"the run has not ended after {self.seconds:,.0f} virtual seconds")

    def loop(self) -> asyncio.AbstractEventLoop:
        """A new event loop that lives on this clock."""
        return _VirtualLoop(self)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """Asks its clock for the time, and its selector to let time pass."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._in_threads = 0
        super().__init__(_VirtualSelector(clock, self._waits_for_threads))

    def time(self) -> float:
        return self._clock.seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._in_threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _: object) -> None:
        self._in_threads -= 1

    def _waits_for_threads(self) -> bool:
        return self._in_threads > 0


class _VirtualSelector(selectors.DefaultSelector):
    """Instead of waiting for a timer, moves the clock to it."""

    def __init__(self, clock: VirtualClock, waits_for_threads: Callable[[], bool]) -> None:
        super().__init__()
        self._clock = clock
        self._real = SystemClock()
        self._waits_for_threads = waits_for_threads

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        # One file is the loop's own, by which other threads wake it.
        if self._waits_for_threads() or len(self.get_map()) > 1:
            begun = self._real.monotonic()
            events = super().select(timeout)
            self._clock.advance(self._real.monotonic() - begun)
            return events
        if events := super().select(0):
            return events
        if timeout is None:
            raise NothingHappens("everybody waits for something that never comes")
        self._clock.advance(timeout)
        return []


__all__ = ["NothingHappens", "VirtualClock"]
