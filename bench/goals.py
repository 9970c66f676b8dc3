"""Holds rows against the goals: what was measured, whether it holds, how far the moonshot is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from bench.bars import Bar, Figure, Goal
from bench.results import BusName, Report, Result, StoreName


@dataclass(frozen=True)
class Standing:
    """A goal and where it stands; `value` is None when it was not measured."""

    goal: Goal
    value: float | None = None
    least: float = 0.0
    greatest: float = 0.0
    moonshot: Bar | None = None
    apart: bool = False  # the two figures of a ratio come from different goes of the harness
    quick: bool = False  # of smaller sizes than the goal names

    @property
    def verdict(self) -> str:
        """Whether the bar holds; empty without a bar."""
        if self.value is None:
            return "not measured"
        return "" if self.goal.bar is None else self.goal.bar.verdict(self.value)

    @property
    def distance(self) -> str:
        """How far the moonshot is; empty without one."""
        if self.value is None or self.moonshot is None:
            return ""
        return self.moonshot.distance(self.value)


def find(report: Report, figure: Figure, store: StoreName, bus: BusName = "none") -> Result | None:
    """The row of one figure."""
    key = (figure[0], store, bus, figure[1])
    return next((row for row in report.results if row.key == key), None)


def standings(report: Report, goals: Sequence[Goal]) -> list[Standing]:
    """Where each goal stands."""
    return [_standing(report, goal) for goal in goals]


def _standing(report: Report, goal: Goal) -> Standing:
    row = find(report, goal.figure, goal.store)
    if row is None:
        return Standing(goal)
    moonshot, of = goal.moonshot, None
    if goal.moonshot_of is not None:
        of = find(report, goal.moonshot_of, goal.store)
        moonshot = goal.moonshot.times(of.value) if of is not None and goal.moonshot else None
    if goal.over is None:
        found = Standing(goal, row.value, *row.spread, moonshot, apart=_apart(row, of))
    else:
        found = _ratio(goal, row, find(report, goal.over, goal.store))
    return replace(found, quick=bool(row.settings.get("quick")))


def _ratio(goal: Goal, row: Result, base: Result | None) -> Standing:
    """The spread is that of the rounds; of two goes, the widest that their repeats allow."""
    if base is None:
        return Standing(goal)
    apart = _apart(row, base) or len(row.repeats) != len(base.repeats)
    couple = product if apart else zip
    ratios = [one / other for one, other in couple(row.repeats, base.repeats)]
    return Standing(
        goal, row.value / base.value, min(ratios), max(ratios), goal.moonshot, _apart(row, base)
    )


def _apart(row: Result, other: Result | None) -> bool:
    return other is not None and row.settings.get("run") != other.settings.get("run")
