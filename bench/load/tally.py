"""What a load test has counted so far."""

from __future__ import annotations

import math
import time
from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bench.load.loads import DeadLetters, Load

PACE_MARKS = 10
"""So many of the last counts tell how fast it goes."""

End: TypeAlias = Literal["done", "timed out", "interrupted", "given up"]


@dataclass
class Tally:
    """Counts of one load; the submitter and the watcher fill it in."""

    load: Load
    began: float = field(default_factory=time.monotonic)
    ids: set[str] = field(default_factory=set)  # of the runs that were started
    latencies: array[float] = field(default_factory=lambda: array("d"))  # of requests, seconds
    held_back: int = 0  # answers that asked to wait
    errors: int = 0  # items that were refused, or whose answer was lost
    first_error: str = ""
    all_submitted: float | None = None  # when, on the same clock as `began`
    ended: float | None = None
    finished: int = 0  # items
    failed: int = 0
    exact: bool = False  # whether these two were counted run by run
    marks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=PACE_MARKS))
    end: End = "done"

    @property
    def submitted(self) -> int:
        """Items that the server has taken."""
        return len(self.ids)

    @property
    def settled(self) -> int:
        """Items that got an answer, or never will."""
        return self.submitted + self.errors

    @property
    def expectation(self) -> DeadLetters:
        """How many items should have failed for good by the end."""
        return self.load.dead_letters(self.load.count)

    @property
    def seconds(self) -> float:
        """From the first request to the last end, or until now."""
        return (self.ended or time.monotonic()) - self.began

    @property
    def submits_per_second(self) -> float:
        """Items taken in a second, while they were submitted."""
        until = self.all_submitted or self.ended or time.monotonic()
        return self.submitted / max(until - self.began, 1e-9)

    @property
    def tasks_per_second(self) -> float:
        """Tasks from the first request to the last end; an attempt more is no task more."""
        return self.finished * self.load.tasks_each / max(self.seconds, 1e-9)

    @property
    def pace(self) -> float:
        """Items that ended in a second, lately."""
        if len(self.marks) < 2:
            return 0.0
        (begin, before), (end, after) = self.marks[0], self.marks[-1]
        return (after - before) / max(end - begin, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """At that pace; None when nobody can tell."""
        left = self.load.count - self.errors - self.finished
        return left / self.pace if self.pace and self.ended is None else None

    def count(self, finished: int, failed: int) -> None:
        """Take over what the server has counted."""
        self.finished, self.failed = finished, failed
        self.marks.append((time.monotonic(), finished))

    def latency_ms(self, *shares: float) -> list[float]:
        """The least latencies that so many percent of the requests do not exceed."""
        ordered = sorted(self.latencies)
        places = [max(0, math.ceil(len(ordered) * share / 100) - 1) for share in shares]
        return [ordered[place] * 1_000 for place in places] if ordered else []

    def note_error(self, items: int, text: str) -> None:
        """Count items that came to nothing."""
        self.errors += items
        self.first_error = self.first_error or text

    def complaints(self) -> list[str]:
        """Everything that is not as it should be."""
        found = list[str]()
        if self.end != "done":
            found.append(f"{self.end}: {self.finished:,} of {self.load.count:,} have ended")
        if self.errors:
            found.append(f"{self.errors:,} {self.load.noun} were not taken: {self.first_error}")
        if self.exact and not self.expectation.fit(self.failed):
            found.append(f"{self.failed:,} dead letters are not what chance explains")
        return found
