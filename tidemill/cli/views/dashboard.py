"""How everything stands, on one screen: numbers, queues, workers, the newest runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidemill.cli.views.report import run_name, took
from tidemill.cli.views.text import clock_time, first_line, listing, printable, short_id
from tidemill.domain.identifiers import Moment
from tidemill.domain.run import RunState
from tidemill.protocol.cloud_events import moment_of
from tidemill.protocol.resources import OverviewView, QueueView, RunView, WorkerView

HISTORY = 60
HEADING_LINES = 5
BLOCK_LINES = 2  # the head of a table and the blank line before it
ROWS_MIN = 3
_SPARKS = " ▁▂▃▄▅▆▇█"
_STYLES = {
    RunState.SUCCEEDED: "green",
    RunState.FAILED: "bold red",
    RunState.CANCELLED: "magenta",
    RunState.RUNNING: "cyan",
}


class Dashboard:
    """Remembers enough to draw how rates have changed."""

    def __init__(self, server: str) -> None:
        self.trouble = ""
        self._server = server
        self._rates: deque[float] = deque(maxlen=HISTORY)
        self._overview: OverviewView | None = None
        self._runs: Sequence[RunView] = ()

    def take(self, overview: OverviewView, runs: Sequence[RunView]) -> None:
        """Take one look."""
        self._overview, self._runs = overview, runs
        self._rates.append(overview.rates.completed)

    def draw(self, width: int, height: int | None) -> RenderableType:
        """One frame; without a height, everything."""
        seen = self._overview
        if seen is None:
            return Text(self.trouble or f"asking {self._server} …")
        now = moment_of(seen.at)
        queues, workers, runs = self._rooms(seen, height)
        blocks: list[RenderableType] = [
            *self._heading(seen, width),
            Text(""),
            _queue_table(seen.queues[:queues], now),
            Text(""),
            _worker_table(seen.workers[:workers], now),
            Text(""),
            _run_table(self._runs[:runs], now),
        ]
        if self.trouble:
            blocks.append(Text(first_line(self.trouble, width - 1), style="bold red"))
        return Group(*blocks)

    def _rooms(self, seen: OverviewView, height: int | None) -> tuple[int, int, int]:
        """How many rows queues, workers and runs get: few of the first two leave room for runs."""
        if height is None:
            return len(seen.queues), len(seen.workers), 10
        room = max(3 * ROWS_MIN, height - HEADING_LINES - 3 * BLOCK_LINES - 1)
        queues = min(len(seen.queues), max(ROWS_MIN, room // 3))
        workers = min(len(seen.workers), max(ROWS_MIN, room // 3))
        return queues, workers, max(1, room - max(1, queues) - max(1, workers))

    def _heading(self, seen: OverviewView, width: int) -> list[Text]:
        title = Text.assemble(
            ("tidemill top", "bold"),
            f"  {printable(self._server)}  namespace {printable(seen.namespace)}",
        )
        at = clock_time(moment_of(seen.at))[:-4]
        title.truncate(max(1, width - len(at) - 2), overflow="ellipsis")
        title.append(" " * max(1, width - title.cell_len - len(at)))
        title.append(at, style="dim")
        rates = seen.rates
        dead = "bold red" if seen.dead_letters else "dim"
        numbers = Text.assemble(
            *_number("runs open", seen.open_runs, "bold"),
            *_number("ready", seen.ready, "cyan"),
            *_number("running", seen.running, "bold cyan"),
            *_number("of slots", seen.slots, "dim"),
            *_number("backoff", seen.backoff, "yellow" if seen.backoff else "dim"),
            *_number("held", seen.held, "yellow" if seen.held else "dim"),
            *_number("dead", seen.dead_letters, dead),
        )
        speeds = Text.assemble(
            *_rate("started", rates.started),
            *_rate("done", rates.completed),
            *_rate("retried", rates.retried),
            *_rate("failed", rates.failed),
        )
        room = max(0, width - speeds.cell_len - 2)
        speeds.append(_sparks(list(self._rates)[-room:] if room else []), style="green")
        return [title, numbers, speeds]


def _number(name: str, count: int, style: str) -> tuple[tuple[str, str], ...]:
    return ((f"{name} ", "dim"), (f"{count:,}", style), ("  ", ""))


def _rate(name: str, value: float) -> tuple[tuple[str, str], ...]:
    text = f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
    return ((f"{name} ", "dim"), (f"{text}/s", "bold" if value else "dim"), ("  ", ""))


def _sparks(values: Sequence[float]) -> str:
    most = max(values, default=0.0)
    if not most:
        return ""
    return "".join(_SPARKS[round(value / most * (len(_SPARKS) - 1))] for value in values)


def _table(*columns: tuple[str, str]) -> Table:
    """Columns with the number of a heading and how it is justified; names give way first."""
    table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
    for place, (heading, justify) in enumerate(columns):
        table.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            ratio=1 if justify == "wide" else None,
            no_wrap=True,
            overflow="ellipsis",
            min_width=len(heading) if place else 8,
        )
    return table


def _queue_table(queues: Sequence[QueueView], now: Moment) -> Table:
    right = "right"
    table = _table(
        ("QUEUE", "wide"),
        ("READY", right),
        ("RUNNING", right),
        ("HELD", right),
        ("WORKERS", right),
        ("SLOTS", right),
        ("OLDEST WAITS", right),
    )
    for one in queues:
        unserved = bool(one.ready) and not one.workers
        table.add_row(
            Text(printable(one.name), style="bold red" if unserved else ""),
            f"{one.ready:,}",
            f"{one.running:,}",
            f"{one.held:,}",
            f"{one.workers:,}",
            f"{one.slots:,}",
            took(one.oldest_ready_at, None, now) if one.oldest_ready_at else "-",
        )
    if not queues:
        table.add_row(Text("nothing waits", style="dim"))
    return table


def _worker_table(workers: Sequence[WorkerView], now: Moment) -> Table:
    table = _table(("WORKER", "wide"), ("BUSY", "left"), ("QUEUES", "left"), ("SINCE", "right"))
    for one in workers:
        table.add_row(
            printable(one.worker),
            _bar(one.running, one.slots, 12),
            listing(one.queues, 2),
            took(one.opened_at, None, now),
        )
    if not workers:
        table.add_row(Text("no worker is connected", style="yellow"))
    return table


def _run_table(runs: Sequence[RunView], now: Moment) -> Table:
    table = _table(
        ("RUN", "left"),
        ("WORKFLOW", "wide"),
        ("STATE", "left"),
        ("TASKS", "left"),
        ("TOOK", "right"),
    )
    for one in runs:
        table.add_row(
            short_id(one.id),
            run_name(one),
            Text(str(one.state), style=_STYLES.get(one.state, "")),
            _bar(one.progress.ended, one.progress.total, 10),
            took(one.started_at, one.ended_at, now) if one.started_at else "-",
        )
    if not runs:
        table.add_row(Text("no runs yet", style="dim"))
    return table


def _bar(part: int, whole: int, cells: int) -> Text:
    filled = cells * min(part, whole) // max(1, whole)
    return Text.assemble(
        ("━" * filled, "green"), ("─" * (cells - filled), "dim"), f" {part:,}/{whole:,}"
    )
