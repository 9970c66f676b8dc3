"""A run as a tree that redraws itself in a terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tidemill.cli.views.model import RunModel, TaskLine
from tidemill.cli.views.text import duration, first_line, plural, printable
from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import Moment
from tidemill.domain.task_run import TaskState

DEPTH_MAX = 8
"""Deeper tasks are not indented further: a chain of thousands would leave the screen."""

NOTICES_MAX = 3
MARGIN_LINES = 6
LINES_MIN = 5
NAME_CHARACTERS_MAX = 40

_LOOKS: dict[TaskState, tuple[str, str, str]] = {
    TaskState.PENDING: ("·", "dim", "waits"),
    TaskState.READY: ("○", "cyan", "ready"),
    TaskState.RUNNING: ("", "bold cyan", "runs"),
    TaskState.BACKOFF: ("↻", "yellow", "waits to try again"),
    TaskState.CANCELLING: ("◌", "magenta", "stops"),
    TaskState.SUCCEEDED: ("✓", "green", "done"),
    TaskState.FAILED: ("✗", "bold red", "failed"),
    TaskState.SKIPPED: ("↷", "dim", "skipped"),
    TaskState.UPSTREAM_FAILED: ("⊘", "red", "not run: something it needs failed"),
    TaskState.CANCELLED: ("◼", "magenta", "cancelled"),
}


class TreeView:
    """Draws the model over and over until it is left; user text is never read as markup."""

    def __init__(self, model: RunModel, console: Console) -> None:
        self._model = model
        self._console = console
        self._notices: deque[Text] = deque(maxlen=NOTICES_MAX)
        self._spinner = Spinner("dots", style="bold cyan")
        self._now: Moment = 0
        self._live = Live(
            console=console,
            auto_refresh=False,  # a thread would draw the model while facts change it
            get_renderable=self._draw,
            vertical_overflow="crop",
        )

    def __enter__(self) -> TreeView:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, fact: Fact, line: TaskLine | None) -> None:
        """The model has taken the fact in already; the next frame shows it."""

    def notice(self, text: str, now: Moment) -> None:
        """Say something below the tree."""
        self._notices.append(Text(f"! {printable(text)}", style="yellow"))
        self.refresh(now)

    def refresh(self, now: Moment) -> None:
        """Draw the next frame: spinners turn, durations grow."""
        self._now = now
        self._live.refresh()

    def _draw(self) -> RenderableType:
        rows = Table.grid(padding=(0, 1))
        for _ in range(4):
            rows.add_column(no_wrap=True)
        shown = self._model.visible(max(LINES_MIN, self._console.height - MARGIN_LINES))
        for position in shown:
            rows.add_row(*self._row(self._model.lines[position]))
        hidden = len(self._model.order) - len(shown)
        if hidden > 0:
            rows.add_row("", Text(f"⋮ {plural(hidden, 'task')} more", style="dim"), "", "")
        return Group(self._heading(), rows, *self._notices)

    def _heading(self) -> RenderableType:
        model = self._model
        heading = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(1, len(model.order)), completed=model.ended, width=24)
        counts = Text(f"{model.ended:,}/{len(model.order):,}", style="bold")
        heading.add_row(Text(printable(model.workflow), style="bold"), bar, counts, self._tally())
        return heading

    def _tally(self) -> Text:
        """How many tasks in each state, when there are too many to see."""
        if len(self._model.order) <= self._console.height - MARGIN_LINES:
            return Text("")
        text = Text()
        for state, count in self._model.counts():
            symbol, style, _ = _LOOKS[state]
            text.append(f"{symbol or '▶'} {count:,}  ", style=style)
        return text

    def _row(self, line: TaskLine) -> Iterator[RenderableType]:
        symbol, style, word = _LOOKS[line.state]
        yield self._spinner if line.state is TaskState.RUNNING else Text(symbol, style=style)
        name = first_line(line.name, NAME_CHARACTERS_MAX)
        yield Text("  " * min(line.depth, DEPTH_MAX) + name, style=style)
        attempt = f"attempt {line.attempt}" if line.attempt > 1 else ""
        yield Text(f"{self._elapsed(line):>9}  {attempt}", style="dim")
        yield self._remark(line, word)

    def _elapsed(self, line: TaskLine) -> str:
        if line.started_at is None:
            return ""
        if line.state is TaskState.RUNNING:
            return duration(self._now - line.started_at)
        return duration(line.ended_at - line.started_at) if line.ended_at is not None else ""

    def _remark(self, line: TaskLine, word: str) -> RenderableType:
        match line.state:
            case TaskState.RUNNING if line.progress is not None:
                filled = round(12 * min(1.0, max(0.0, line.progress)))
                bar = "█" * filled + "░" * (12 - filled)
                return Text(f"{bar} {line.progress:4.0%} {first_line(line.note, 60)}")
            case TaskState.FAILED | TaskState.BACKOFF:
                return Text(f"{word}: {first_line(line.note, 100)}", style="red")
            case TaskState.PENDING if line.joins:
                return Text(f"after {line.joins}", style="dim")
            case TaskState.SUCCEEDED | TaskState.PENDING | TaskState.RUNNING:
                return Text("")
            case _:
                return Text(word, style="dim")
