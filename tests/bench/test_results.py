"""The file that measurements leave behind, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.bars import bar_of
from bench.results import Report, Result, Sample, load_report, save_report, summarise
from bench.shapes import chain, fan
from bench.stores import store_source
from bench.workloads import WORKLOADS
from tests.bench.rows import MACHINE, a_peer_row, a_report, a_row
from tidemill.domain.validation import check_workflow


def rows(metric: str, *repeats: float) -> list[Result]:
    return summarise("chain", "sqlite", [Sample(metric, "ratio", repeats)], {"large": 10_000})


def test_a_row_has_the_fields_that_readers_of_the_file_expect() -> None:
    [row] = rows("growth", 3.0, 1.0, 1.5)

    assert msgspec.json.decode(msgspec.json.encode(row)) == {
        "workload": "chain",
        "store": "sqlite",
        "bus": "none",
        "metric": "growth",
        "value": 1.5,
        "unit": "ratio",
        "repeats": [3.0, 1.0, 1.5],
        "settings": {"large": 10_000},
    }


def test_workloads_that_run_singly_merge_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first = Report(machine=MACHINE).merged([*rows("growth", 1.0), *rows("other", 5.0)])
    save_report(path, first)

    again = load_report(path, MACHINE).merged(rows("growth", 2.0))

    assert [(row.metric, row.value) for row in again.results] == [("growth", 2.0), ("other", 5.0)]


def test_rows_of_another_machine_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save_report(path, Report(machine=MACHINE).merged(rows("growth", 1.0)))

    assert load_report(path, {**MACHINE, "cores": 64}).results == ()


def test_rows_of_other_versions_stay_with_their_own(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save_report(path, Report(machine=MACHINE).merged(rows("growth", 1.0)))

    report = load_report(path, {**MACHINE, "python": "3.12"})

    assert (report.machine["python"], len(report.results)) == ("3.12", 1)


def test_a_variant_is_part_of_the_name_of_its_workload() -> None:
    samples = [Sample("submits_per_second", "1/s", [1.0], "bulk"), Sample("n", "", [1.0])]

    found = summarise("jobs", "sqlite", samples, {}, "kafka")

    assert [(row.workload, row.bus) for row in found] == [("jobs-bulk", "kafka"), ("jobs", "kafka")]


def test_settings_of_one_sample_stay_with_it() -> None:
    samples = [Sample("a", "", [1.0], settings={"batch": 100}), Sample("b", "", [1.0])]

    found = summarise("limit", "sqlite", samples, {"tasks": 5})

    assert [row.settings for row in found] == [{"tasks": 5, "batch": 100}, {"tasks": 5}]


def test_rows_of_different_buses_stand_beside_each_other() -> None:
    report = a_report(a_row("jobs rate", 1.0), a_row("jobs rate", 2.0, bus="redis"))

    again = report.merged([a_row("jobs rate", 3.0, bus="redis")])

    assert [(row.bus, row.value) for row in again.results] == [("none", 1.0), ("redis", 3.0)]


def test_rows_of_peers_merge_by_peer_and_stay_apart_from_ours(tmp_path: Path) -> None:
    first = a_report(a_row("jobs rate", 9.0), peers=(a_peer_row("dbos", "jobs rate", 1.0),))
    save_report(tmp_path / "file", first)

    again = load_report(tmp_path / "file", MACHINE).merged(
        peers=[a_peer_row("dbos", "jobs rate", 2.0), a_peer_row("celery", "jobs rate", 3.0)]
    )

    assert [(row.peer, row.value) for row in again.peers] == [("dbos", 2.0), ("celery", 3.0)]
    assert [row.value for row in again.results] == [9.0]


def test_a_row_without_a_bar_is_only_shown() -> None:
    [row] = rows("ms_per_task_small", 1.0)

    assert bar_of(row) is None


def test_every_workload_has_a_name_of_its_own() -> None:
    names = [workload.name for workload in WORKLOADS]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("workflow", [chain(20), fan(20)])
def test_the_measured_shapes_are_valid(workflow: object) -> None:
    checked = check_workflow(msgspec.to_builtins(workflow))

    assert checked is not None


async def test_the_settings_of_a_store_are_read_back() -> None:
    with store_source("sqlite") as fresh_store:
        async with fresh_store() as (address, settings):
            assert address.path is not None

    assert (settings["journal_mode"], settings["synchronous"]) == ("wal", 2)
