"""Time, as roles see it."""

from __future__ import annotations

from typing import Protocol

from tidemill.domain.identifiers import Moment


class Clock(Protocol):
    """The wall clock of a node and a way to wait. Leases never depend on it."""

    def now(self) -> Moment:
        """The wall clock, which may be wrong and may jump."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, for measuring durations."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
