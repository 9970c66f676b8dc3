"""Which rows go into which picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bench.bars import CHAINS, HOP_P50, HOP_P99, JOBS, LIMIT, RATE, Figure
from bench.charts import BarChart, LineChart, Point
from bench.goals import find
from bench.results import BusName, PeerResult, Report, Result, StoreName

STORES: tuple[tuple[StoreName, str], ...] = (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
BUSES: tuple[BusName, ...] = ("none", "kafka", "redis")
US, PEERS = "Tidemill", "peers"


def draw_plots(report: Report) -> dict[str, str]:
    """File names and contents; a picture without rows is not drawn."""
    charts: dict[str, BarChart | LineChart | None] = {
        "throughput.svg": throughput(report),
        "limit.svg": limit(report),
        "hops.svg": hops(report),
        "fan.svg": growth(report, "fan", "ms_per_task", "tasks at once", "ms per task"),
        "backlog.svg": growth(report, "backlog", RATE, "tasks queued", "tasks per second"),
        "endurance.svg": endurance(report),
    }
    return {name: chart.svg() for name, chart in charts.items() if chart is not None}


def save_plots(report: Report, folder: Path) -> list[str]:
    """Write the pictures, and say which there are; those of an earlier time go."""
    plots = draw_plots(report)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, text in plots.items():
        (folder / name).write_text(text)
    return list(plots)


def throughput(report: Report) -> BarChart | None:
    """No-op tasks per second, ours and the peers'."""
    bars = [*_ours(report, JOBS), *_theirs(report, JOBS)]
    return _bar_chart("No-op tasks per second, end to end", bars, "/s")


def limit(report: Report) -> BarChart | None:
    """What the store can do, and how much of it is left."""
    bars = [
        (f"{figure[0]}, {title}", title, row.value)
        for store, title in STORES
        for figure in (LIMIT, JOBS, CHAINS)
        if (row := find(report, figure, store)) is not None
    ]
    return _bar_chart("Tasks per second, and those of the bare SQL", bars, "/s")


def hops(report: Report) -> BarChart | None:
    """Milliseconds from the end of one task to the start of the next."""
    bars = [
        *_ours(report, HOP_P50, "p50"),
        *_ours(report, HOP_P99, "p99"),
        *_theirs(report, HOP_P50, "p50 of peers"),
    ]
    if not bars:
        return None
    title = "Hop between two tasks on an idle system (logarithmic)"
    return BarChart(title, bars, "ms", logarithmic=True)


def growth(
    report: Report, workload: str, metric: str, x_label: str, y_label: str
) -> LineChart | None:
    """A cost over the size that is part of the workload's name."""
    lines = {title: _points(report, store, workload, metric) for store, title in STORES}
    lines = {title: points for title, points in lines.items() if points}
    if not lines:
        return None
    return LineChart(f"{workload}: {y_label} over {x_label}", lines, x_label, y_label)


def endurance(report: Report) -> LineChart | None:
    """The rate of each part of a long go, which its row has kept."""
    rows = {title: find(report, ("endurance", RATE), store) for store, title in STORES}
    lines = {title: _series(row) for title, row in rows.items() if row is not None}
    lines = {title: points for title, points in lines.items() if points}
    if not lines:
        return None
    title, x_label = "endurance: tasks per second, job after job", "jobs that have ended"
    return LineChart(title, lines, x_label, "tasks per second", logarithmic=False)


def _series(row: Result) -> list[Point]:
    rates, jobs = row.settings.get("series", []), row.settings.get("jobs", 0)
    return [(jobs * place / len(rates), rate) for place, rate in enumerate(rates, start=1)]


def _points(report: Report, store: StoreName, workload: str, metric: str) -> list[Point]:
    name = re.compile(rf"{workload}-(\d+)")
    rows = [row for row in report.results if (row.store, row.bus) == (store, "none")]
    found = [(name.fullmatch(row.workload), row) for row in rows if row.metric == metric]
    return [(float(match[1]), row.value) for match, row in found if match is not None]


def _ours(report: Report, figure: Figure, series: str = US) -> list[tuple[str, str, float]]:
    places = [(store, title, bus) for store, title in STORES for bus in BUSES]
    return [
        (f"{title}" if bus == "none" else f"{title}, {bus}", series, row.value)
        for store, title, bus in places
        if (row := find(report, figure, store, bus)) is not None
    ]


def _theirs(report: Report, figure: Figure, series: str = PEERS) -> list[tuple[str, str, float]]:
    rows = [row for row in report.peers if row.metric == figure[1]]
    found = [(_variant(row, figure[0]), row) for row in rows]
    return [
        (f"{row.peer}{variant} ({row.store})", series, row.value)
        for variant, row in found
        if variant is not None
    ]


def _variant(row: PeerResult, workload: str) -> str | None:
    """Empty for the workload itself, None for another one."""
    name, rest = row.workload[: len(workload)], row.workload[len(workload) :]
    if name != workload or not (rest == "" or rest.startswith("-")):
        return None
    return rest.replace("-", " ")


def _bar_chart(title: str, bars: Sequence[tuple[str, str, float]], unit: str) -> BarChart | None:
    return BarChart(title, bars, unit) if bars else None
