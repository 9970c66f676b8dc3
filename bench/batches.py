"""How fast batch after batch went, and any part of it."""

from __future__ import annotations

from collections.abc import Sequence


class Batches:
    """Batches in the order in which they ran: how much each was, and how long it took."""

    def __init__(self, name: str, batches: Sequence[tuple[int, float]] = ()) -> None:
        self.name = name
        self._batches = list(batches)

    def __len__(self) -> int:
        return len(self._batches)

    def note(self, count: int, seconds: float) -> None:
        """Add a batch."""
        self._batches.append((count, seconds))

    @property
    def count(self) -> int:
        """How much they are together."""
        return sum(count for count, _ in self._batches)

    @property
    def seconds(self) -> float:
        """How long they took together."""
        return sum(taken for _, taken in self._batches)

    @property
    def rate(self) -> float:
        """Tasks per second over all of them."""
        return self.count / self.seconds

    @property
    def rates(self) -> list[float]:
        """Tasks per second of each."""
        return [count / seconds for count, seconds in self._batches]

    def last(self, batches: int) -> Batches:
        """So many at the end."""
        return Batches(self.name, self._batches[-batches:])

    def series(self, batches: int = 1) -> list[int]:
        """Rates of so many batches each, to be recorded."""
        starts = range(0, len(self), batches)
        parts = (Batches(self.name, self._batches[one : one + batches]) for one in starts)
        return [round(part.rate) for part in parts]
