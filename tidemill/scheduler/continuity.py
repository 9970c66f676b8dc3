"""For how long something has gone on without a gap."""

from __future__ import annotations

from tidemill.domain.identifiers import SECOND
from tidemill.ports.clock import Clock


class Continuity:
    """For how long this process has reached what it depends on without a gap."""

    def __init__(self, clock: Clock, gap_seconds_max: float) -> None:
        self._clock = clock
        self._gap_seconds_max = gap_seconds_max
        self._since: float | None = None
        self._last = (0.0, 0)

    def reached(self) -> None:
        """It has answered."""
        steady, wall = self._clock.monotonic(), self._clock.now()
        if self._since is None or self._gap(steady, wall) > self._gap_seconds_max:
            self._since = steady
        self._last = (steady, wall)

    def missed(self) -> None:
        """It has not answered."""
        self._since = None

    def lasted(self, seconds: float) -> bool:
        """Whether there was no gap for so long."""
        return self._since is not None and self._clock.monotonic() - self._since >= seconds

    @property
    def is_recent(self) -> bool:
        """Whether it has answered just now."""
        gap = self._gap(self._clock.monotonic(), self._clock.now())
        return self._since is not None and gap <= self._gap_seconds_max

    def _gap(self, steady: float, wall: int) -> float:
        return max(steady - self._last[0], (wall - self._last[1]) / SECOND)
