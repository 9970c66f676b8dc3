"""The page and its pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.charts import BarChart, LineChart
from bench.page import page_of, write_page
from bench.plots import draw_plots, endurance
from bench.plots import hops as draw_hops
from bench.results import Report, Sample, summarise
from tests.bench.rows import MACHINE, a_peer_row, a_report, a_row


def a_full_report() -> Report:
    return a_report(
        a_row("limit tasks_per_second", 20_000.0, store="postgresql"),
        a_row("jobs tasks_per_second", 5_900.0, 6_000.0, 6_100.0, store="postgresql"),
        a_row("jobs tasks_per_second", 5_000.0, store="postgresql", bus="kafka"),
        a_row("hop hop_p50_ms", 1.5),
        a_row("fan-100 ms_per_task", 0.5),
        a_row("fan-100000 ms_per_task", 0.25),
        a_row("backlog-1000 tasks_per_second", 1.0),
        peers=(a_peer_row("dbos", "jobs tasks_per_second", 300.0),),
    )


@pytest.mark.parametrize(("value", "verdict"), [(1.9, "holds"), (2.1, "MISSED")])
def test_the_page_says_whether_a_bar_holds(value: float, verdict: str) -> None:
    page = page_of(a_report(a_row("hop hop_p50_ms", value)))

    assert f"≤ 2 {verdict}" in page


def test_the_page_says_how_much_of_the_limit_is_reached() -> None:
    page = page_of(a_full_report())

    share = "| `jobs` to `limit` | postgresql | 0.3 | 0.295 … 0.305 | ≥ 0.3 holds | ≥ 0.5 |"
    assert f"{share} 60 % of the way |" in page


def test_the_page_sets_peers_beside_us_and_says_what_they_lose() -> None:
    page = page_of(a_full_report())

    assert "| dbos | postgresql | 300 | 20× holds |  |  | what it held |" in page


def test_a_peer_may_have_several_ways_from_task_to_task() -> None:
    hops = (a_peer_row("dbos", "hop hop_p50_ms", 9), a_peer_row("dbos", "hop-steps hop_p50_ms", 2))
    report = a_report(peers=hops)

    chart = draw_hops(report)

    assert "| dbos | postgresql |  |  | 9, steps 2 |" in page_of(report)
    assert chart is not None
    assert [name for name, *_ in chart.bars] == ["dbos (postgresql)", "dbos steps (postgresql)"]


def test_figures_of_a_quick_go_are_marked() -> None:
    [row] = summarise("hop", "sqlite", [Sample("hop_p50_ms", "ms", [1.0])], {"quick": True})

    assert "| 1 ‡ |" in page_of(a_report(row))


def test_every_row_is_on_the_page_under_its_workload() -> None:
    page = page_of(a_full_report())

    assert "### `fan`\n" in page
    assert "| fan-100000 | sqlite | none | ms_per_task | 0.25 | 0.25 … 0.25 |" in page


def test_a_page_without_rows_can_be_written() -> None:
    page = page_of(Report(machine=MACHINE))

    assert "not measured" in page


def test_pictures_are_shown_where_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "old.svg").write_text("of an earlier time")

    write_page(a_full_report(), tmp_path / "benchmarks.md")

    names = {path.name for path in (tmp_path / "benchmarks").iterdir()}
    page = (tmp_path / "benchmarks.md").read_text()
    assert names == {"throughput.svg", "limit.svg", "hops.svg", "fan.svg", "backlog.svg"}
    assert all(f"](benchmarks/{name})" in page for name in names)


def test_pictures_are_small_and_the_same_each_time() -> None:
    plots = draw_plots(a_full_report())

    assert plots == draw_plots(a_full_report())
    assert all(len(text) < 100_000 for text in plots.values())


def test_the_rates_of_a_long_go_become_a_line() -> None:
    settings = {"jobs": 40, "series": [4, 3, 4, 4]}
    [row] = summarise("endurance", "sqlite", [Sample("tasks_per_second", "", [4.0])], settings)

    chart = endurance(a_report(row))

    assert chart is not None
    assert chart.lines == {"SQLite": [(10, 4), (20, 3), (30, 4), (40, 4)]}


def test_a_picture_without_rows_is_not_drawn() -> None:
    assert draw_plots(Report(machine=MACHINE)) == {}


def test_bars_are_as_long_as_their_values() -> None:
    chart = BarChart("a < b", [("one", "s", 10.0), ("two", "s", 40.0)], "/s")

    _, one, two = ElementTree.fromstring(chart.svg()).iterfind("{*}rect")

    assert float(two.attrib["width"]) == 4 * float(one.attrib["width"])


def test_bars_on_a_logarithmic_scale_grow_by_their_magnitude() -> None:
    values = [("a", "s", 1.0), ("b", "s", 10.0), ("c", "s", 100.0)]
    chart = BarChart("hops", values, "ms", logarithmic=True)

    _, *bars = ElementTree.fromstring(chart.svg()).iterfind("{*}rect")

    first, second, third = (float(bar.attrib["width"]) for bar in bars)
    assert second - first == pytest.approx(third - second, abs=0.2)


def test_the_x_axis_of_lines_is_logarithmic() -> None:
    chart = LineChart("t", {"line": [(1, 1), (10, 2), (100, 4)]}, "n", "ms")

    places = [dot.attrib for dot in ElementTree.fromstring(chart.svg()).iterfind("{*}circle")]

    first, second, third = (float(place["cx"]) for place in places)
    assert second - first == pytest.approx(third - second, abs=0.2)
