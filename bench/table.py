"""Shows rows to people: a table in the terminal, and the page in the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from bench.bars import bar_of
from bench.results import Report, Result

HEADINGS = ("workload", "store", "metric", "median", "least … greatest", "bar")
NUMBERS = {"median", "least … greatest"}
PAGE = """\
# Benchmarks

Written by `make bench ARGS=--page`; how each figure comes about stands at the top of its file in
`bench/workloads/`. Product defaults; SQLite with `synchronous=FULL`, PostgreSQL with `fsync`,
`full_page_writes` and `synchronous_commit` on, read back and recorded with each row. Every task
goes through a worker process over a gRPC session. Scheduler, database, worker and client share the
cores. Small runs have {small} tasks, large ones {large}; growth is the ratio of their times per
task.

{machine}
{surroundings}

{rows}
"""


def draw_table(results: Sequence[Result]) -> Table:
    """For the terminal."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in NUMBERS else "left", no_wrap=True)
    for result in results:
        table.add_row(*_cells(result))
    return table


def write_page(report: Report) -> str:
    """For the documentation, in Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(_cells(result) for result in report.results)]
    rows = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    sizes = next((row.settings for row in report.results if "large" in row.settings), {})
    return PAGE.format(
        small=f"{sizes.get('small', 0):,}",
        large=f"{sizes.get('large', 0):,}",
        machine=_machine(report.machine),
        surroundings=_surroundings(report.results),
        rows=rows,
    )


def _cells(result: Result) -> tuple[str, ...]:
    bar = bar_of(result)
    least, greatest = result.spread
    verdict = "" if bar is None else ("holds" if bar.holds(result.value) else "MISSED")
    return (
        result.workload,
        result.store,
        result.metric,
        f"{_number(result.value)} {result.unit}",
        f"{_number(least)} … {_number(greatest)}",
        "" if bar is None else f"{bar} {verdict}",
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"Machine: {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}; Python {machine['python']}, SQLite {machine['sqlite']}."
    )


def _surroundings(results: Sequence[Result]) -> str:
    revisions = sorted({str(row.settings.get("revision", "not recorded")) for row in results})
    loads = [
        float(row.settings["load_average"]) for row in results if "load_average" in row.settings
    ]
    load = f"{min(loads):g} … {max(loads):g}" if loads else "not recorded"
    return f"Code: {', '.join(revisions)}. Load average as each workload began: {load}."
