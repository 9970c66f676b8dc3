"""Shows a load to people: bars or lines on the way, and a table in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from bench.load.loads import SIGMAS
from bench.load.running import Tell
from bench.load.tally import Tally


@contextmanager
def telling(console: Console) -> Iterator[Tell]:
    """Two bars in a terminal, else a line each time."""
    if not console.is_terminal:
        yield lambda tally: console.print(progress_line(tally), soft_wrap=True)
        return
    with _progress(console) as progress:
        yield _Bars(progress).tell


def progress_line(tally: Tally) -> str:
    """How far a load has come."""
    left = tally.seconds_left
    return (
        f"{tally.seconds:4.0f} s  submitted {tally.submitted:,} of {tally.load.count:,} "
        f"({tally.submits_per_second:,.0f}/s)  finished {tally.finished:,} ({_rate(tally):,.0f}/s)"
        + (f"  about {left:.0f} s left" if left is not None else "")
    )


def summary(tally: Tally) -> Table:
    """Everything that was counted."""
    table = Table(box=SIMPLE, show_header=False, padding=(0, 1, 0, 0), title_justify="left")
    table.add_column("what", no_wrap=True)
    table.add_column("how much", justify="right", no_wrap=True)
    table.add_column("", style="dim", overflow="fold")
    for cells in _rows(tally):
        table.add_row(*cells)
    return table


def _rows(tally: Tally) -> Iterator[tuple[str, str, str]]:
    load = tally.load
    # Before every run has ended, the server's own counters are all there is.
    about = "" if tally.exact else "by the counters of the server"
    yield "submitted", f"{tally.submitted:,}", f"of {load.count:,} {load.noun}"
    yield "submit rate", f"{tally.submits_per_second:,.0f}/s", ""
    yield "finished", f"{tally.finished:,}", about
    yield "succeeded", f"{tally.finished - tally.failed:,}", about
    yield "dead letters", f"{tally.failed:,}", _expectation(tally)
    yield "end to end", f"{tally.tasks_per_second:,.0f} tasks/s", _tasks(tally)
    for share, latency in zip((50, 95, 99), tally.latency_ms(50, 95, 99), strict=False):
        yield f"request p{share}", f"{latency:,.1f} ms", ""
    yield "asked to wait", f"{tally.held_back:,}", "answers 429 and 503, obeyed"
    yield "errors", f"{tally.errors:,}", tally.first_error
    yield "wall time", f"{tally.seconds:,.1f} s", ""


def _expectation(tally: Tally) -> str:
    expected = tally.expectation
    if not expected.expected:
        return "none expected"
    return f"{expected.expected:,.0f} ± {expected.tolerance:,.0f} expected ({SIGMAS:g} sigma)"


def _tasks(tally: Tally) -> str:
    each = tally.load.tasks_each
    return f"{each} tasks each" if each > 1 else ""


def _rate(tally: Tally) -> float:
    """Lately, and in the end of the whole."""
    return tally.pace if tally.ended is None else tally.finished / max(tally.seconds, 1e-9)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:9}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}", justify="right"),
        TextColumn("{task.fields[rate]:,.0f}/s", justify="right"),
        TextColumn("{task.fields[left]}", justify="right"),
        console=console,
        expand=True,
    )


class _Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: list[TaskID] = []

    def tell(self, tally: Tally) -> None:
        count = tally.load.count
        if not self._bars:
            self._bars = [
                self._progress.add_task(name, total=count, rate=0.0, left="")
                for name in ("submitted", "finished")
            ]
        submitted, finished = self._bars
        left = tally.seconds_left
        self._progress.update(submitted, completed=tally.submitted, rate=tally.submits_per_second)
        self._progress.update(
            finished,
            completed=tally.finished,
            rate=_rate(tally),
            left="" if left is None else f"{timedelta(seconds=round(left))} left",
        )
