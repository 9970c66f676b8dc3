"""The page of the documentation, made from the rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from bench.bars import GOALS, HOP_P50, JOBS, LIMIT_GOALS, RESIDENT, Figure, at_least
from bench.goals import Standing, find, standings
from bench.plots import save_plots
from bench.results import PeerResult, Report, Result, Row, StoreName
from bench.table import HEADINGS, cells, number

INTRODUCTION = """\
# Benchmarks

Written by `make bench ARGS=--page` from what was measured; how each figure comes about stands at
the top of its file in `bench/workloads/`. `make bench ARGS='--peers --bus none kafka redis'`
measures everything, `make bench QUICK=1` a smaller part within ten minutes.

## How to read it

Every figure is the median of its repeats; the least and the greatest stand beside it. Product
defaults: SQLite with `synchronous=FULL`, PostgreSQL with `fsync`, `full_page_writes` and
`synchronous_commit` on, read back from the server and kept with each row. Every task goes through a
worker process over a gRPC session, its start and its outcome are committed, and its facts are in
the outbox. Scheduler, database, worker and client share the cores.

A bar is a number to hold; a moonshot is one to dream of. Nothing fails by them here. Figures that
are compared come from one go of the harness on one machine; where they do not, † says so. `limit`,
`jobs`, `chain3` and `hop` take turns, round by round: a shared machine is now faster, now slower.
The spread of a ratio is that of its rounds. ‡ marks figures of a quick go, whose sizes are smaller
than the text says."""

LIMIT_TEXT = """\
## How close to the store

`limit` is bare batched SQL on the same tables and the same server: no Tidemill, no worker, no
session. A share of 30 % means that all the rest costs a little more than twice what the rows do."""

PEERS_TEXT = """\
## Peers

Other programs with the same no-op work on the same machine, in settings that their documentation
calls fast. The factor is Tidemill's tasks per second on PostgreSQL to theirs; the bar is 10 for
those that keep their work over a crash. Tidemill loses nothing that it acknowledged; a program that
loses more does less, so the last column belongs to the first."""
DURABLE_BAR = at_least(10)

GROWTH_TEXT = """\
## Growth

A flat line means that one more task costs what the last one did."""

PLOTS = {
    "throughput.svg": "No-op tasks per second, Tidemill and peers",
    "limit.svg": "Tasks per second, and those of the bare SQL",
    "hops.svg": "Milliseconds per hop",
    "fan.svg": "Time per task over the width of a fan-out",
    "endurance.svg": "Tasks per second over the tasks that have ended",
    "backlog.svg": "Tasks per second over the tasks that wait",
}


def write_page(report: Report, path: Path) -> None:
    """Write the page, and the pictures into a folder beside it that has its name."""
    folder = path.with_suffix("")
    plots = save_plots(report, folder)
    path.write_text(page_of(report, [f"{folder.name}/{name}" for name in plots]))


def page_of(report: Report, plots: Sequence[str] = ()) -> str:
    """The text, which shows pictures at these places."""
    sections = [
        INTRODUCTION,
        _surroundings(report),
        "## Bars and moonshots",
        _goals(standings(report, GOALS)),
        LIMIT_TEXT,
        _goals(standings(report, LIMIT_GOALS)),
        *_pictures(plots, "limit.svg"),
        *_peers(report),
        *_pictures(plots, "throughput.svg", "hops.svg"),
        *_growth(plots),
        "## Every figure",
        *_workloads(report.results),
        *_peer_rows(report.peers),
    ]
    return "\n\n".join(sections) + "\n"


def _surroundings(report: Report) -> str:
    machine, rows = report.machine, (*report.results, *report.peers)
    lines = [
        "Machine: {processor}, {cores} cores, {memory_gib} GiB, {system}.".format_map(machine),
        f"Versions: {_versions(rows)}, PostgreSQL {_told(rows, 'server_version')}.",
        f"Code: {_told(rows, 'revision')}. Load average as each workload began: {_loads(rows)}.",
    ]
    return "\n\n".join(lines)


def _versions(rows: Sequence[Row]) -> str:
    told = dict[str, set[str]]()
    for row in rows:
        for name, version in row.settings.get("versions", {}).items():
            told.setdefault(name, set()).add(version)
    found = [f"{name} {' and '.join(sorted(versions))}" for name, versions in told.items()]
    return ", ".join(found) or "not recorded"


def _told(rows: Sequence[Row], name: str) -> str:
    found = sorted({str(row.settings[name]) for row in rows if name in row.settings})
    return ", ".join(found) or "not recorded"


def _loads(rows: Sequence[Row]) -> str:
    loads = [float(one.settings["load_average"]) for one in rows if "load_average" in one.settings]
    return f"{min(loads):g} … {max(loads):g}" if loads else "not recorded"


def _goals(found: Sequence[Standing]) -> str:
    headings = ("what", "store", "measured", "least … greatest", "bar", "moonshot", "how far")
    return _table(headings, map(_goal_cells, found))


def _goal_cells(one: Standing) -> tuple[str, ...]:
    goal = one.goal
    bar = "" if goal.bar is None else str(goal.bar)
    moonshot = "" if one.moonshot is None else str(one.moonshot)
    if one.value is None:
        return goal.what, goal.store, one.verdict, "", bar, str(goal.moonshot or ""), ""
    measured = number(one.value) + (" †" if one.apart else "") + (" ‡" if one.quick else "")
    spread = f"{number(one.least)} … {number(one.greatest)}"
    return goal.what, goal.store, measured, spread, f"{bar} {one.verdict}", moonshot, one.distance


def _peers(report: Report) -> list[str]:
    if not report.peers:
        return []
    headings = ("", "store", "tasks/s", "factor", "hop p50, ms", "idle, MiB", "a crash loses")
    ours = [_our_cells(report, "postgresql"), _our_cells(report, "sqlite")]
    names = dict.fromkeys((row.peer, row.store) for row in report.peers)
    theirs = [_peer_cells(report, peer, store) for peer, store in names]
    return [PEERS_TEXT, _table(headings, [*ours, *theirs])]


def _our_cells(report: Report, store: StoreName) -> tuple[str, ...]:
    rows = [find(report, one, store) for one in (JOBS, HOP_P50, RESIDENT)]
    rate, hop, resident = ("" if row is None else number(row.value) for row in rows)
    return "**Tidemill**", store, rate, "", hop, resident, "nothing"


def _peer_cells(report: Report, peer: str, store: str) -> tuple[str, ...]:
    rows = [row for row in report.peers if (row.peer, row.store) == (peer, store)]
    rate, resident = _of(rows, JOBS), _of(rows, RESIDENT)
    shown = ["" if row is None else number(row.value) for row in (rate, resident)]
    factor, losses = _factor(report, rate), _told(rows, "losses")
    return peer, store, shown[0], factor, _hops(rows), shown[1], losses


def _hops(rows: Sequence[PeerResult]) -> str:
    """With variants: some programs have more than one way from task to task."""
    found = [row for row in rows if row.metric == HOP_P50[1]]
    named = [(row.workload.removeprefix("hop").lstrip("-"), number(row.value)) for row in found]
    return ", ".join(f"{variant} {value}".strip() for variant, value in named)


def _factor(report: Report, theirs: PeerResult | None) -> str:
    ours = find(report, JOBS, "postgresql")
    if ours is None or theirs is None:
        return ""
    factor = ours.value / theirs.value
    verdict = f" {DURABLE_BAR.verdict(factor)}" if theirs.settings.get("durable") else ""
    apart = " †" if ours.settings.get("run") != theirs.settings.get("run") else ""
    return f"{factor:.3g}×{verdict}{apart}"


def _of(rows: Sequence[PeerResult], wanted: Figure) -> PeerResult | None:
    return next((row for row in rows if (row.workload, row.metric) == wanted), None)


def _pictures(plots: Sequence[str], *names: str) -> list[str]:
    places = {Path(place).name: place for place in plots}
    return [f"![{PLOTS[name]}]({places[name]})" for name in names if name in places]


def _growth(plots: Sequence[str]) -> list[str]:
    found = _pictures(plots, "fan.svg", "backlog.svg", "endurance.svg")
    return [GROWTH_TEXT, *found] if found else []


def _workloads(results: Sequence[Result]) -> Iterable[str]:
    """A table for each workload, its variants included."""
    families = dict.fromkeys(_family(row) for row in results)
    ranked = sorted(results, key=lambda row: list(families).index(_family(row)))
    for family, rows in groupby(ranked, key=_family):
        yield f"### `{family}`"
        yield _table(HEADINGS, map(cells, rows))


def _family(row: Result) -> str:
    return row.workload.partition("-")[0]


def _peer_rows(rows: Sequence[PeerResult]) -> list[str]:
    if not rows:
        return []
    headings = ("peer", "workload", "store", "metric", "median", "least … greatest")
    shown = [(row.peer, row.workload, row.store, row.metric, *cells(row)[4:6]) for row in rows]
    return ["### Peers", _table(headings, shown)]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.strip() for cell in line) + " |" for line in lines)
