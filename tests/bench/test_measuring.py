"""What the harness runs when asked for this or that."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from bench.__main__ import choice_of, parse
from bench.measuring import Choice, Measuring
from bench.results import Result, Sample
from bench.stage import Peer, Stage, Workload
from bench.workloads import WORKLOADS


async def answer(stage: Stage) -> list[Sample]:
    async with stage.fresh_store() as (_, settings):
        stage.settings |= settings
    return [Sample("repeats", "", [float(stage.repeats)])]


async def fail(_: Stage) -> list[Sample]:
    raise RuntimeError("it cannot be measured")


def measured(*workloads: Workload, peers: tuple[Peer, ...] = ()) -> tuple[Measuring, list[Result]]:
    choice = Choice(workloads, peers, stores=["sqlite"], buses=["none"], repeats=3, quick=True)
    with ExitStack() as stack:
        measuring = Measuring(choice, stack, lambda *_: None)
        return measuring, [row for rows in measuring.results() for row in rows]


def test_a_row_keeps_what_was_read_back_and_which_go_it_comes_from() -> None:
    _, [row] = measured(Workload("jobs", answer))

    assert (row.workload, row.store, row.bus, row.value) == ("jobs", "sqlite", "none", 3.0)
    assert row.settings.keys() >= {"revision", "load_average", "run", "synchronous"}


def test_a_workload_that_fails_does_not_cost_the_others() -> None:
    measuring, rows = measured(Workload("broken", fail), Workload("jobs", answer))

    assert [row.workload for row in rows] == ["jobs"]
    assert measuring.failed == ["broken"]


def test_workloads_that_are_compared_take_turns() -> None:
    turns = list[str]()

    def counting(name: str) -> Workload:
        async def measure(stage: Stage) -> list[Sample]:
            turns.append(name)
            return [Sample("place", "", [float(len(turns))] * stage.repeats)]

        def conclude(samples: list[Sample]) -> list[Sample]:
            return [*samples, Sample("rounds", "", [float(len(samples[0].repeats))])]

        return Workload(name, measure, in_rounds=True, conclude=conclude)

    _, rows = measured(counting("limit"), counting("jobs"))

    assert turns == ["limit", "jobs"] * 3
    assert [row.repeats for row in rows] == [(1.0, 3.0, 5.0), (3.0,), (2.0, 4.0, 6.0), (3.0,)]


def test_one_that_fails_in_a_round_has_no_row_and_the_others_go_on() -> None:
    measuring, rows = measured(
        Workload("broken", fail, in_rounds=True), Workload("jobs", answer, in_rounds=True)
    )

    assert [(row.workload, row.repeats) for row in rows] == [("jobs", (1.0, 1.0, 1.0))]
    assert measuring.failed == ["broken"]


def test_a_workload_runs_only_where_it_can() -> None:
    _, rows = measured(
        Workload("elsewhere", answer, stores=("postgresql",)),
        Workload("over kafka", answer, buses=("kafka",)),
    )

    assert rows == []


def test_a_peer_says_what_it_loses() -> None:
    peer = Peer("dbos", "sqlite", answer, losses="nothing", settings={"queue": 8})
    choice = Choice([], [peer], stores=[], buses=[], repeats=1, quick=True)

    with ExitStack() as stack:
        [[row]] = Measuring(choice, stack, lambda *_: None).peers()

    assert (row.peer, row.workload, row.metric) == ("dbos", "jobs", "repeats")
    assert (row.settings["losses"], row.settings["queue"]) == ("nothing", 8)


def test_all_workloads_run_without_brokers_and_peers_unless_asked() -> None:
    choice = choice_of(parse([]))

    assert list(choice.workloads) == list(WORKLOADS)
    assert (list(choice.buses), list(choice.peers), choice.repeats) == (["none"], [], 5)


def test_a_quick_go_leaves_out_what_takes_long_unless_it_is_named() -> None:
    choice = choice_of(parse(["--quick"]))

    assert list(choice.workloads) == [one for one in WORKLOADS if one.in_quick]
    assert choice.repeats == 3


def test_no_workload_runs_when_none_is_named() -> None:
    assert choice_of(parse(["--only", "--page"])).workloads == []


def test_an_unknown_workload_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--only", "nothing-like-it"])

    assert "invalid choice: 'nothing-like-it'" in capsys.readouterr().err
