"""The report: what was done, what came of it, and the verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

RATE_MIN = 1_000.0
"""Finished workflows a minute, on average over the time of the faults."""

FIRED_MIN = 5
"""How often each kind of fault must have fired in a long run."""

LONG_MINUTES = 10.0
VIOLATIONS_MAX = 50

# What must not be found in any log. A kill -9 says nothing; whatever else ends badly does.
COMPLAINTS = {
    "traceback": re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE),
    "begins_anew": re.compile(r"failed and begins anew|failed and tries again"),
    "taken_apart": re.compile(r"failed and is taken apart"),
    "quarantine": re.compile(r"is put into quarantine"),
    "left_behind": re.compile(r"is left behind"),
}


class Report(msgspec.Struct, kw_only=True):
    """Everything that is worth keeping, as JSON."""

    settings: dict[str, Any]
    seed: int
    minutes: float
    faults: dict[str, int]
    faults_expected: list[str]
    workflows_finished: int
    workflows_per_minute: float
    per_minute: list[int]
    tasks_finished: int
    runs: dict[str, int]
    runs_by_shape: dict[str, int]
    longest_seconds_without_commit: float
    drain_seconds: float
    accepted: int
    lost_runs: int
    double_outcomes: int
    double_executions: int
    attempts_by_ending: dict[str, int]
    executions: int
    submitted_twice: int
    events: dict[str, int]
    process_starts: dict[str, int]
    unexpected_ends: list[str]
    complaints: dict[str, int]
    violations: list[str]
    failures: list[str] = []
    verdict: str = ""

    def judge(self, *, rate_min: float = RATE_MIN) -> None:
        """Say whether it has passed, and what is wrong if not."""
        self.failures = list(self._find_failures(rate_min))
        self.verdict = "failed" if self.failures else "passed"

    def _find_failures(self, rate_min: float) -> list[str]:
        failures = self.violations[:VIOLATIONS_MAX] + self.unexpected_ends[:VIOLATIONS_MAX]
        failures += [f"{count} × {name} in the logs" for name, count in self.complaints.items()]
        if self.workflows_per_minute < rate_min:
            rate = f"{self.workflows_per_minute:.0f} workflows a minute"
            failures.append(f"{rate}, at least {rate_min:.0f} are asked for")
        fired_min = FIRED_MIN if self.minutes >= LONG_MINUTES else 1
        for name in self.faults_expected:
            if self.faults.get(name, 0) < fired_min:
                failures.append(f"{name} fired {self.faults.get(name, 0)} times")
        return failures

    def save(self, path: Path) -> None:
        """Write it down."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")


def find_complaints(logs: Mapping[str, str]) -> dict[str, int]:
    """How often each complaint stands in the logs; those that do not are left out."""
    found: Counter[str] = Counter()
    for text in logs.values():
        for name, pattern in COMPLAINTS.items():
            found[name] += len(pattern.findall(text))
    return {name: count for name, count in found.items() if count}
