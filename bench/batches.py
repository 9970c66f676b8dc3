"""How fast batch after batch went, and any part of it."""

from __future__ import annotations

from collections.abc import Sequence


class Batches:
    """Batches in the order in which they ran: how much each was, and how long it took."""

    def __init__(self, batches: Sequence[tuple[int, float]] = ()) -> None:
        self._batches = list(batches)

    def note(self, count: int, seconds: float) -> None:
        """Add a batch."""
        self._batches.append((count, seconds))

    @property
    def rate(self) -> float:
        """Tasks per second over all of them."""
        return sum(count for count, _ in self._batches) / sum(taken for _, taken in self._batches)

    @property
    def rates(self) -> list[float]:
        """Tasks per second of each."""
        return [count / seconds for count, seconds in self._batches]

    def first(self, batches: int) -> Batches:
        """So many from the beginning."""
        return Batches(self._batches[:batches])

    def last(self, batches: int) -> Batches:
        """So many at the end."""
        return Batches(self._batches[-batches:])

    def last_seconds(self, seconds: float) -> Batches:
        """Those at the end that took so long together, and the last one at least."""
        chosen = 1
        while chosen < len(self._batches) and self._seconds(chosen + 1) <= seconds:
            chosen += 1
        return self.last(chosen)

    def series(self, batches: int = 1) -> list[int]:
        """Rates of so many batches each, to be recorded."""
        starts = range(0, len(self._batches), batches)
        return [round(Batches(self._batches[start : start + batches]).rate) for start in starts]

    def _seconds(self, batches: int) -> float:
        return sum(taken for _, taken in self._batches[-batches:])
