"""Figures held against bars and moonshots."""

from __future__ import annotations

import pytest

from bench.bars import JOBS, LIMIT, Goal, at_least, at_most, bar_of
from bench.goals import standings
from tests.bench.rows import a_report, a_row


@pytest.mark.parametrize(
    ("value", "verdict", "distance"),
    [
        (4.0, "MISSED", "4× away"),
        (1.6, "holds", "1.6× away"),
        (1.0, "holds", "reached"),
    ],
)
def test_what_should_be_small_is_so_many_times_away(
    value: float, verdict: str, distance: str
) -> None:
    goal = Goal("hop", "sqlite", ("hop", "p50"), at_most(2), at_most(1))

    [found] = standings(a_report(a_row("hop p50", value)), [goal])

    assert (found.verdict, found.distance) == (verdict, distance)


def test_what_should_be_large_is_a_part_of_the_way() -> None:
    goal = Goal("rate", "sqlite", JOBS, at_least(8_000), at_least(20_000))

    [found] = standings(a_report(a_row("jobs tasks_per_second", 12_200)), [goal])

    assert (found.verdict, found.distance) == ("holds", "61 % of the way")


@pytest.mark.parametrize(
    ("run", "least", "greatest"), [("today", 0.3, 0.5), ("yesterday", 0.2, 0.75)]
)
def test_a_ratio_has_the_spread_of_its_rounds_and_of_two_goes_the_widest(
    run: str, least: float, greatest: float
) -> None:
    goal = Goal("share", "sqlite", JOBS, at_least(0.3), over=LIMIT)
    ours = a_row("jobs tasks_per_second", 4, 5, 6, run="today")
    limit = a_row("limit tasks_per_second", 8, 10, 20, run=run)

    [found] = standings(a_report(ours, limit), [goal])

    assert (found.value, found.least, found.greatest) == (0.5, least, greatest)


def test_a_moonshot_may_be_a_share_of_another_figure() -> None:
    goal = Goal("rate", "sqlite", JOBS, at_least(1), at_least(0.5), moonshot_of=LIMIT)
    rows = a_row("jobs tasks_per_second", 3), a_row("limit tasks_per_second", 10)

    [found] = standings(a_report(*rows), [goal])

    assert (str(found.moonshot), found.distance) == ("≥ 5", "60 % of the way")


def test_figures_of_different_goes_are_told_apart() -> None:
    goal = Goal("share", "sqlite", JOBS, over=LIMIT)
    old = a_row("limit tasks_per_second", 10, run="yesterday")

    [found] = standings(a_report(a_row("jobs tasks_per_second", 3), old), [goal])

    assert found.apart


def test_a_goal_without_its_rows_was_not_measured() -> None:
    goal = Goal("share", "postgresql", JOBS, at_least(0.3), over=LIMIT)

    [found] = standings(a_report(a_row("jobs tasks_per_second", 3, store="postgresql")), [goal])

    assert (found.value, found.verdict, found.distance) == (None, "not measured", "")


def test_a_bar_of_throughput_is_for_rows_without_a_broker() -> None:
    alone, beside = (a_row("jobs tasks_per_second", 1, bus=bus) for bus in ("none", "kafka"))

    assert (str(bar_of(alone)), bar_of(beside)) == ("≥ 8,000", None)
