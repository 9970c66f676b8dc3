"""The file that measurements leave behind, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.bars import bar_of
from bench.results import Report, Result, Sample, load_report, save_report, summarise
from bench.shapes import chain, fan
from bench.stores import store_source
from bench.table import write_page
from bench.workloads import WORKLOADS
from tidemill.domain.validation import check_workflow

MACHINE = {
    "processor": "none",
    "cores": 2,
    "memory_gib": 4,
    "system": "Linux",
    "python": "3.11",
    "sqlite": "3.45",
}


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


@pytest.mark.parametrize(("value", "verdict"), [(1.9, "holds"), (2.1, "MISSED")])
def test_the_page_says_whether_a_bar_holds(value: float, verdict: str) -> None:
    page = write_page(Report(machine=MACHINE).merged(rows("growth", value)))

    assert f"≤ 2 {verdict}" in page


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
