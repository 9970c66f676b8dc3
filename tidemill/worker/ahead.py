"""Short tasks that a worker takes ahead of its slots.

Tasks of microseconds end sooner than a scheduler commits the next grants: with no more in hand
than can run at once, worker and scheduler would wait for each other. So a worker whose tasks are
short asks for more than it has slots, and lets wait what does not fit, in order of arrival. What
finds no slot soon goes back unspent, since then the tasks are not short any more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from tidemill.domain.identifiers import Token
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import Assignment

AHEAD_PER_SLOT = 23
AHEAD_MAX = 1_472
"""With the 64 slots that a worker has by default, 1,536 grants in all."""

SHORT_SECONDS = 0.005
LONG_SECONDS = 0.007

REST_SECONDS = 1.0
"""So long a worker that handed something back takes nothing ahead, however short its tasks are."""

MEAN_OF = 256
"""Four rounds of the slots by default: one in which the process had to wait changes nothing."""

LOOK_SECONDS_MIN = 0.001


class Pace:
    """Whether the tasks of a worker are short, by the moving mean of what they took."""

    def __init__(self, attempts_min: int) -> None:
        self.brisk = False
        self._attempts_min = attempts_min
        self._ended = 0
        self._mean = 0.0
        self._rests_until: float | None = None

    def note(self, seconds: float, now: float) -> None:
        """Count an attempt that has ended."""
        self._ended += 1
        self._mean += (seconds - self._mean) / min(self._ended, MEAN_OF)
        if self._mean > LONG_SECONDS:
            self.brisk = False
        elif not self.brisk and self._mean < SHORT_SECONDS:
            rested = self._rests_until is None or now >= self._rests_until
            self.brisk = rested and self._ended >= self._attempts_min

    def rest(self, now: float) -> None:
        """Something waited for too long."""
        self.brisk = False
        self._rests_until = now + REST_SECONDS


class Ahead:
    """What a worker has in hand and no slot for; a worker of no slots never has anything."""

    def __init__(
        self, slots: int, wait_seconds: float, clock: Clock, on_late: Callable[[], None]
    ) -> None:
        self._most = min(AHEAD_PER_SLOT * slots, AHEAD_MAX)
        self._pace = Pace(slots)
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._on_late = on_late
        self._waiting: OrderedDict[Token, tuple[Assignment, float]] = OrderedDict()
        self._looks = False  # a timer is set

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, token: Token) -> bool:
        return token in self._waiting

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The grants that wait."""
        return tuple(self._waiting)

    @property
    def wanted(self) -> int:
        """How many grants more than slots are asked for."""
        return self._most if self._pace.brisk else 0

    @property
    def room(self) -> int:
        """How many more may wait."""
        return max(0, self.wanted - len(self._waiting))

    def put(self, assignment: Assignment) -> None:
        """Let it wait; `on_late` is called when that takes too long."""
        assert self.room > 0, "whoever lets something wait looks for room first"
        self._waiting[assignment.token] = (assignment, self._clock.monotonic())
        if not self._looks:
            self._look_after(self._wait_seconds)

    def take(self) -> Assignment:
        """The one that has waited for longest."""
        return self._waiting.popitem(last=False)[1][0]

    def drop(self, token: Token) -> bool:
        """Let it wait no longer; whether it did."""
        return self._waiting.pop(token, None) is not None

    def note(self, seconds: float, now: float) -> bool:
        """Count an attempt that has ended; whether another number is wanted from now on."""
        if not self._most:
            return False
        wanted = self.wanted
        self._pace.note(seconds, now)
        return self.wanted != wanted

    def _look_after(self, seconds: float) -> None:
        # One timer at most, which is left to run out: what waits mostly waits for a moment.
        self._looks = True
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._looks = False
        if not self._waiting:
            return
        now = self._clock.monotonic()
        _, since = next(iter(self._waiting.values()))
        left = since + self._wait_seconds - now
        if left > 0:
            self._look_after(max(left, LOOK_SECONDS_MIN))
        else:
            self._pace.rest(now)
            self._on_late()
