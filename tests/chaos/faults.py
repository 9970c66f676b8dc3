"""The script of faults: what is done to whom and when, all of it drawn from one seed."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

LEASE_SECONDS = 6.0
"""The life of a session, by default: pauses are shorter or longer than it on purpose."""


@dataclass(frozen=True)
class Fault:
    """One thing that happens to one role, `at` seconds after the beginning."""

    at: float
    role: str  # worker, scheduler, notifier, postgres, broker
    kind: str  # kill, terminate, restart, or a kind of pause
    chance: float  # decides which process of the role is hit
    seconds: float  # how long it lasts: of a pause, or until the server is started again

    @property
    def name(self) -> str:
        """How it is counted."""
        return f"{self.role}_{self.kind}"


@dataclass(frozen=True)
class Line:
    """A fault that comes again and again, at intervals between these seconds."""

    role: str
    kind: str
    every: tuple[float, float]
    lasts: tuple[float, float] = (0.0, 0.0)


SHORT = (0.3, LEASE_SECONDS / 2)
LONG = (LEASE_SECONDS * 1.3, LEASE_SECONDS * 3)
LINES = (
    Line("worker", "kill", (1, 10)),
    Line("scheduler", "kill", (1, 10)),
    Line("worker", "terminate", (10, 40)),
    Line("scheduler", "terminate", (10, 40)),
    Line("worker", "pause_short", (10, 40), SHORT),
    Line("worker", "pause_long", (20, 60), LONG),
    Line("scheduler", "pause_short", (10, 40), SHORT),
    Line("scheduler", "pause_long", (20, 60), LONG),
    Line("notifier", "kill", (5, 30)),
    Line("notifier", "pause_long", (30, 90), LONG),
    Line("postgres", "kill", (5, 40), (0.0, 1.0)),
    Line("postgres", "restart", (40, 120)),
    Line("postgres", "pause", (40, 120), (0.5, 4.0)),
    Line("broker", "kill", (20, 60), (0.0, 5.0)),
    Line("broker", "pause", (30, 90), (0.5, 8.0)),
)
HASTY_LINES = (
    Line("worker", "kill", (1, 5)),
    Line("scheduler", "kill", (2, 6)),
    Line("worker", "terminate", (4, 10)),
    Line("scheduler", "terminate", (5, 12)),
    Line("worker", "pause_short", (4, 9), (0.3, 2.0)),
    Line("worker", "pause_long", (3, 6), (8.0, 9.0)),
    Line("scheduler", "pause_short", (5, 10), (0.3, 2.0)),
    Line("notifier", "kill", (3, 8)),
    Line("postgres", "kill", (5, 12), (0.0, 0.5)),
    Line("broker", "kill", (6, 15), (0.0, 1.0)),
    Line("broker", "pause", (8, 20), (0.5, 2.0)),
)
"""The same within half a minute: every kind at least once, most of them several times."""


def script(seed: int, seconds: float, lines: tuple[Line, ...] = LINES) -> list[Fault]:
    """Every fault of a run, in order of time. The same seed, the same script."""
    streams = [_stream(Random(f"{seed}/{line.role}/{line.kind}"), line, seconds) for line in lines]
    return list(heapq.merge(*streams, key=lambda fault: fault.at))


def _stream(chance: Random, line: Line, seconds: float) -> Iterator[Fault]:
    at = chance.uniform(*line.every)
    while at < seconds:
        yield Fault(at, line.role, line.kind, chance.random(), chance.uniform(*line.lasts))
        at += chance.uniform(*line.every)
