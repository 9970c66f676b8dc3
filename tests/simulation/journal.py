"""The journal: the last things that happened, for the report of a failure."""

from __future__ import annotations

from collections import deque
from typing import Any

from tests.simulation.loop import SimLoop

LINES_KEPT = 200


class Journal:
    """Remembers what happened, formats it only when somebody asks."""

    def __init__(self, loop: SimLoop, *, kept: int = LINES_KEPT) -> None:
        self._loop = loop
        self._lines: deque[tuple[float, str, str, tuple[Any, ...]]] = deque(maxlen=kept)

    def note(self, who: str, what: str, *details: Any) -> None:
        """Write down one event."""
        self._lines.append((self._loop.time(), who, what, details))

    def lines(self) -> list[str]:
        """The last events, oldest first."""
        return [
            f"{moment:10.4f}  {who:<16} {what} {' '.join(str(detail) for detail in details)}"
            for moment, who, what, details in self._lines
        ]
