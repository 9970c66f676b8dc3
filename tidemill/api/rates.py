"""How much happens in a second, counted from the facts that pass by."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from tidemill.domain.facts import Fact, FactType
from tidemill.ports.clock import Clock
from tidemill.protocol.resources import RateView

WINDOW_SECONDS = 60

_COUNTED = {
    FactType.TASK_STARTED: "started",
    FactType.TASK_COMPLETED: "completed",
    FactType.TASK_FAILED: "failed",
    FactType.TASK_RETRYING: "retried",
}


class Rates:
    """Counts by namespace for each of the last seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._seconds: deque[tuple[int, Counter[tuple[str, str]]]] = deque(maxlen=WINDOW_SECONDS)

    def hear(self, facts: Sequence[Fact]) -> None:
        """Count what these facts tell."""
        second = int(self._clock.monotonic())
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append((second, Counter()))
        counts = self._seconds[-1][1]
        for fact in facts:
            name = _COUNTED.get(fact.type)
            if name is not None:
                counts[fact.namespace, name] += 1

    def view(self, namespace: str) -> RateView:
        """What happened in a second, on average, in one namespace."""
        now = self._clock.monotonic()
        window = max(1.0, min(float(WINDOW_SECONDS), now - self._since))
        recent = [counts for second, counts in self._seconds if second > now - WINDOW_SECONDS]
        rates = {
            name: round(sum(counts[namespace, name] for counts in recent) / window, 2)
            for name in _COUNTED.values()
        }
        return RateView(**rates)


__all__ = ["Rates"]
