"""Chance: every draw of a seed, which faults the seed has, and how often each of them struck."""

from __future__ import annotations

from collections import Counter
from random import Random

# Every fault kind, with the share of opportunities at which it strikes at strength 1.
FAULTS = {
    "store.error_before": 0.02,
    "store.busy": 0.02,
    "store.disconnect": 0.01,
    "store.commit_then_error": 0.03,
    "store.lost_commit": 0.03,
    "store.error_at_commit": 0.02,
    "store.stall_statement": 0.01,
    "store.stall_commit": 0.05,
    "store.stall_reply": 0.02,
    "store.run_locked": 0.1,
    "store.row_locked": 0.1,
    "store.outage": 0.5,
    "node.kill_in_transaction": 0.003,
    "node.kill_after_commit": 0.004,
    "node.kill": 1.0,
    "node.pause": 1.0,
    "node.pause_in_transaction": 0.003,
    "node.drain": 0.5,
    "node.blackout": 0.3,
    "node.skew": 1.0,
    "net.slow": 0.05,
    "net.break": 0.01,
    "net.partition": 1.0,
    "net.isolate": 1.0,
    "net.half_open": 0.7,
    "net.silent_death": 0.3,
    "bus.lose": 0.3,
    "bus.duplicate": 0.2,
    "bus.delay": 0.3,
    "bus.refuse": 0.1,
    "bus.deleted": 1.0,
    "task.fail": 0.25,
    "task.final": 0.06,
    "task.hang": 0.05,
    "task.long": 0.5,
    "task.ignore_cancel": 0.3,
    "task.crash_worker": 0.02,
    "task.killer": 0.1,
    "client.cancel": 0.3,
    "client.replay": 0.7,
    "client.twice": 0.4,
    "client.pause": 0.4,
    "client.retry": 0.3,
}

LATE_COMERS = frozenset({"client.pause", "client.retry"})
"""Drawn from a source of their own, so that older kinds keep their places in a seed."""

QUIET_SHARE = 0.1
"""This share of the seeds has no faults of the machinery at all."""


class Chance:
    """The seed's source of chance, with a switch and a strength for every fault kind."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.late = Random(seed ^ 0x9A05E)
        self.counts: Counter[str] = Counter()
        self.faults_on = True
        self._strength = self._draw_swarm()

    def _draw_swarm(self) -> dict[str, float]:
        quiet = self.random.random() < QUIET_SHARE
        # Faults get in each other's way, so some seeds have few kinds and some have many.
        share = self.random.choice((0.15, 0.3, 0.5, 0.7))
        strengths = {}
        for name in FAULTS:
            machinery = not name.startswith(("task.", "client."))
            source = self._source(name)
            on = source.random() < share
            strength = source.choice((0.5, 1.0, 1.0, 2.0))
            strengths[name] = strength if on and not (quiet and machinery) else 0.0
        if strengths["bus.deleted"]:
            strengths["bus.deleted"] = float(self.random.random() < 0.2)
        return strengths

    def keep_only(self, *prefixes: str) -> None:
        """Take all other faults out of this seed."""
        for name in self._strength:
            if not name.startswith(prefixes):
                self._strength[name] = 0.0

    def has(self, name: str) -> bool:
        """Whether this seed has the fault kind at all."""
        return self._strength[name] > 0

    def sometimes(self, name: str) -> bool:
        """Whether the fault strikes at this opportunity; counted when it does."""
        probability = FAULTS[name] * self._strength[name]
        if not self.faults_on or not probability or self._source(name).random() >= probability:
            return False
        self.counts[name] += 1
        return True

    def _source(self, name: str) -> Random:
        return self.late if name in LATE_COMERS else self.random

    def between(self, low: float, high: float) -> float:
        """A number, evenly from the range."""
        return low + (high - low) * self.random.random()

    def describe(self) -> str:
        """The faults of this seed and their strengths, for the report of a failure."""
        return " ".join(f"{name}x{value:g}" for name, value in self._strength.items() if value)
