"""Where to begin looking for rows of the outbox that have no position yet."""

from __future__ import annotations

SETTLED_SECONDS = 15.0
"""Longer than a transaction is given: what is not seen by then will hardly come."""

WHOLE_LOOK_EVERY = 4


class StampFloor:
    """A number of the outbox that the rows without a position left behind long ago.

    While somebody else's snapshot is open, the database keeps rows as they were before they were
    stamped, and a look from the beginning passes them all. Numbers are given before the commit, so
    a row may appear behind those that are stamped already: the floor is older than a transaction
    gets, and for what did get older there is a whole look now and then.
    """

    def __init__(self) -> None:
        self._floor = 0
        self._next = 0  # the floor after this one
        self._latest = 0
        self._moved_at = 0.0
        self._moves = 0

    def at(self, seconds: float) -> int:
        """The lowest number to look at, by a clock that never goes back."""
        if seconds - self._moved_at < SETTLED_SECONDS:
            return self._floor
        self._floor, self._next = self._next, self._latest
        self._moved_at = seconds
        self._moves += 1
        return 0 if self._moves % WHOLE_LOOK_EVERY == 0 else self._floor

    def found(self, number: int) -> None:
        """Note the lowest number without a position: those below have one, or are not seen yet."""
        self._latest = max(self._latest, number)
