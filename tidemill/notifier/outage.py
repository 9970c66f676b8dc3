"""Whether something is out of reach, told once when that changes."""

from __future__ import annotations

import logging

from tidemill.domain.identifiers import SECOND, Moment
from tidemill.ports.clock import Clock

log = logging.getLogger(__name__)


class Outage:
    """The state of one thing that others depend on; it works until it fails."""

    def __init__(self, what: str, clock: Clock) -> None:
        self._what = what
        self._clock = clock
        self.since: Moment | None = None
        self.reason = ""
        self.tries = 0

    def failed(self, reason: str) -> None:
        """Note a failure; only the first in a row is logged."""
        self.reason = reason
        self.tries += 1
        if self.since is None:
            self.since = self._clock.now()
            log.warning("%s is out of reach: %s", self._what, reason)

    def worked(self) -> None:
        """Note a success."""
        if self.since is not None:
            log.warning("%s is back after %.1f s", self._what, self._seconds())
        self.since = None
        self.tries = 0

    def tell(self) -> list[str]:
        """What is wrong right now, for people: at most one sentence."""
        if self.since is None:
            return []
        return [f"{self._what} is out of reach for {self._seconds():.0f} s: {self.reason}"]

    def _seconds(self) -> float:
        return max(0, self._clock.now() - (self.since or 0)) / SECOND
