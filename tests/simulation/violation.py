"""What a checker says when an invariant does not hold."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """A broken invariant: its name in docs/simulator.md, and what was seen."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"
