"""The numbers to hold, and those to dream of. They are shown beside what was measured; nothing
fails by them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from bench.results import Result, StoreName

Figure: TypeAlias = tuple[str, str]
"""A workload and a metric."""


@dataclass(frozen=True)
class Bar:
    """Bounds that a metric must not pass."""

    most: float = math.inf
    least: float = -math.inf

    def holds(self, value: float) -> bool:
        """Whether a median is on the right side."""
        return self.least <= value <= self.most

    def verdict(self, value: float) -> str:
        """In a word."""
        return "holds" if self.holds(value) else "MISSED"

    def times(self, factor: float) -> Bar:
        """A bound that was given as a share of another figure."""
        return Bar(self.most * factor, self.least * factor)

    def distance(self, value: float) -> str:
        """How far a value is from it."""
        if self.holds(value):
            return "reached"
        if self.least == -math.inf:
            return f"{value / self.most:.3g}× away"
        return f"{value / self.least:.0%} of the way".replace("%", " %")

    def __str__(self) -> str:
        if self.least == -math.inf:
            return f"≤ {_number(self.most)}"
        return f"≥ {_number(self.least)}"


@dataclass(frozen=True)
class Goal:
    """A line of the table of bars and moonshots."""

    what: str
    store: StoreName
    figure: Figure
    bar: Bar | None = None
    moonshot: Bar | None = None
    over: Figure | None = None  # the measured number is the ratio to this figure
    moonshot_of: Figure | None = None  # the moonshot is a share of this figure


def at_most(value: float) -> Bar:
    """For what should be small."""
    return Bar(most=value)


def at_least(value: float) -> Bar:
    """For what should be large."""
    return Bar(least=value)


RATE = "tasks_per_second"
SUBMITS = "submits_per_second"
JOBS: Figure = ("jobs", RATE)
CHAINS: Figure = ("chain3", RATE)
CHAINS_TO_JOBS: Figure = ("chain3", "ratio_to_jobs")
LIMIT: Figure = ("limit", RATE)
LIMIT_CHAINS: Figure = ("limit-chain3", RATE)
FAN_LARGE: Figure = ("fan-100000", "ms_per_task")
FAN_SMALL: Figure = ("fan-1000", "ms_per_task")
HOP_P50: Figure = ("hop", "hop_p50_ms")
HOP_P99: Figure = ("hop", "hop_p99_ms")
BACKLOG: Figure = ("backlog", "claim_ratio")
ENDURANCE: Figure = ("endurance", "ratio_last_to_first")
SNAPSHOT: Figure = ("snapshot", "slowdown_percent")
RESIDENT: Figure = ("footprint", "resident_mib_idle")

GOALS: tuple[Goal, ...] = (
    Goal("no-op tasks end to end, per second", "postgresql", JOBS,
         at_least(5_000), at_least(0.5), moonshot_of=LIMIT),
    Goal("no-op tasks end to end, per second", "sqlite", JOBS, at_least(8_000), at_least(20_000)),
    Goal("chains of three, tasks per second to those of single jobs", "postgresql", CHAINS_TO_JOBS,
         at_least(0.7), at_least(0.9)),
    Goal("chains of three, tasks per second to those of single jobs", "sqlite", CHAINS_TO_JOBS,
         at_least(0.7), at_least(0.9)),
    Goal("hop between two tasks, idle, p50 in ms", "postgresql", HOP_P50, at_most(5), at_most(3)),
    Goal("hop between two tasks, idle, p99 in ms", "postgresql", HOP_P99, at_most(20), at_most(8)),
    Goal("hop between two tasks, idle, p50 in ms", "sqlite", HOP_P50, at_most(2), at_most(1)),
    Goal("hop between two tasks, idle, p99 in ms", "sqlite", HOP_P99, at_most(8), at_most(4)),
    Goal("single jobs POSTed over 200 connections, per second", "postgresql",
         ("submit", SUBMITS), at_least(6_000), at_least(12_000)),
    Goal("jobs submitted in bulk, per second", "postgresql",
         ("jobs-bulk", SUBMITS), at_least(20_000), at_least(50_000)),
    Goal("jobs submitted in bulk, per second", "sqlite",
         ("jobs-bulk", SUBMITS), at_least(20_000), at_least(50_000)),
    Goal("time per task of a fan-out of 100,000 to one of 1,000", "postgresql", FAN_LARGE,
         at_most(1.5), at_most(1.1), over=FAN_SMALL),
    Goal("time per task of a fan-out of 100,000 to one of 1,000", "sqlite", FAN_LARGE,
         at_most(1.5), at_most(1.1), over=FAN_SMALL),
    Goal("claim time with 1,000,000 queued to that with 1,000", "postgresql",
         BACKLOG, at_most(1.5), at_most(1.1)),
    Goal("claim time with 1,000,000 queued to that with 1,000", "sqlite",
         BACKLOG, at_most(1.5), at_most(1.1)),
    Goal("worker killed until its task runs elsewhere, p99 in s", "postgresql",
         ("kills", "seconds_p99"), at_most(10)),
    Goal("worker killed until its task runs elsewhere, p50 in s", "postgresql",
         ("kills", "seconds_p50"), None, at_most(4)),
    Goal("`tidemill up` at rest, MiB resident in all", "sqlite", RESIDENT,
         at_most(150), at_most(80)),
    Goal("start to first finished run, s", "sqlite",
         ("footprint", "first_run_seconds"), at_most(3), at_most(1)),
    Goal("rate of the last tenth of 1,000,000 tasks to that of the first", "postgresql",
         ENDURANCE, at_least(0.95)),
    Goal("rate of the last tenth of 1,000,000 tasks to that of the first", "sqlite",
         ENDURANCE, at_least(0.95)),
    Goal("slower under a foreign snapshot held for 5 minutes, %", "postgresql",
         SNAPSHOT, at_most(20)),
)  # fmt: skip

LIMIT_GOALS: tuple[Goal, ...] = (
    Goal("`jobs` to `limit`", "postgresql", JOBS, at_least(0.3), at_least(0.5), over=LIMIT),
    Goal("`chain3` to `limit`", "postgresql", CHAINS, at_least(0.3), at_least(0.5), over=LIMIT),
    Goal("`chain3` to `limit-chain3`", "postgresql", CHAINS, over=LIMIT_CHAINS),
    Goal("`jobs` to `limit`", "sqlite", JOBS, over=LIMIT),
    Goal("`chain3` to `limit`", "sqlite", CHAINS, over=LIMIT),
    Goal("`chain3` to `limit-chain3`", "sqlite", CHAINS, over=LIMIT_CHAINS),
)

BARS: dict[Figure, Bar] = {
    ("jobs", "growth"): at_most(1.5),
    ("fan", "growth"): at_most(1.5),
    ("chain", "growth"): at_most(2),
    ("recover", "seconds_to_running_again"): at_most(10),
    ("failover", "pause_p99"): at_most(8),
    ("scale", "ratio"): at_least(0.8),
    ("idle", "scheduler_queries_per_second"): at_most(5),
    ("footprint", "import_ms"): at_most(150),
    ("footprint", "help_ms"): at_most(400),
    ("footprint", "install_mb"): at_most(80),
    ("footprint", "install_with_api_mb"): at_most(80),
}
"""Bars of single rows that are not among the goals."""


def bar_of(result: Result) -> Bar | None:
    """The bar of a row, where there is one; throughput bars hold without a broker."""
    figure = (result.workload, result.metric)
    goals = (one for one in GOALS if one.over is None and result.bus == "none")
    of_row = (one.bar for one in goals if (one.figure, one.store) == (figure, result.store))
    return next(of_row, None) or BARS.get(figure)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
