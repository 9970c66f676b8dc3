"""Shows rows to people: cells, and a table of them in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table

from bench.bars import bar_of
from bench.results import PeerResult, Result, Row

HEADINGS = ("workload", "store", "bus", "metric", "median", "least … greatest", "bar")
NUMBERS = {"median", "least … greatest"}


def draw_table(rows: Sequence[Row]) -> Table:
    """For the terminal."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*cells(row))
    return table


def cells(row: Row) -> tuple[str, ...]:
    """One row under the headings."""
    name = f"{row.peer}: {row.workload}" if isinstance(row, PeerResult) else row.workload
    median, spread = figure(row.value, row.unit), spread_of(row)
    return name, row.store, row.bus, row.metric, median, spread, _verdict(row)


def figure(value: float, unit: str) -> str:
    """A number and its unit."""
    return f"{number(value)} {unit}".rstrip()


def number(value: float) -> str:
    """Three digits that matter, thousands set apart."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def spread_of(row: Row) -> str:
    """The least and the greatest repeat."""
    least, greatest = row.spread
    return f"{number(least)} … {number(greatest)}"


def _verdict(row: Row) -> str:
    bar = bar_of(row) if isinstance(row, Result) else None
    return "" if bar is None else f"{bar} {bar.verdict(row.value)}"
