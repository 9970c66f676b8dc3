"""A run as a tree that redraws itself in a terminal."""

from __future__ import annotations

from collections import deque

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from tidemill.cli.views.model import RunModel, TaskLine
from tidemill.cli.views.text import duration, first_line, plural, printable
from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.domain.task_run import TaskState

DEPTH_MAX = 8
"""Deeper tasks are not indented further: a chain of thousands would leave the screen."""

NOTICES_MAX = 3
MARGIN_LINES = 3  # the heading, the count of hidden tasks, and the line of the cursor
LINES_MIN = 5
BAR_CELLS = 24
TOOK_CELLS = 11
ATTEMPT_CELLS = 10
FIXED_CELLS = 2 + 1 + TOOK_CELLS + 1 + ATTEMPT_CELLS
"""The icon, how long it took, the attempt, and the blanks before each: these never give way."""

BAR_ROOM_CELLS = 30  # with less room for it, a note is better used for words

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
        self._longest = max((cell_len(_indented(line)) for line in model.lines), default=0)
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
        room = self._room()
        shown = self._model.visible(room)
        rows = [self._row(self._model.lines[position]) for position in shown]
        hidden = len(self._model.order) - len(shown)
        if hidden > 0:
            rows.append(Text(f"  ⋮ {plural(hidden, 'task')} more", style="dim"))
        return Group(self._heading(room), *rows, *self._notices)

    def _room(self) -> int:
        """How many tasks fit between the heading and the notices."""
        width = self._console.width
        said = sum(1 + (notice.cell_len - 1) // width for notice in self._notices)
        return max(LINES_MIN, self._console.height - MARGIN_LINES - said)

    def _width(self) -> int:
        """What a line may fill: the ^C of an interrupt must not push the last one over."""
        return max(20, self._console.width - 2)

    def _heading(self, room: int) -> Text:
        """The workflow and how far it is; by state as well, when there is too much to see."""
        model, width = self._model, self._width()
        counts = f"{model.ended:,}/{len(model.order):,}"
        cells = min(BAR_CELLS, max(4, width // 4))
        filled = cells * model.ended // max(1, len(model.order))
        name = Text(printable(model.workflow), style="bold")
        name.truncate(max(1, width - cells - len(counts) - 2), overflow="ellipsis")
        text = Text.assemble(
            name,
            " ",
            ("━" * filled, "green"),
            ("─" * (cells - filled), "dim"),
            " ",
            (counts, "bold"),
        )
        if len(model.order) > room:
            for state, count in model.counts():
                symbol, style, _ = _LOOKS[state]
                text.append(f"  {symbol or '▶'} {count:,}", style=style)
        text.truncate(width, overflow="ellipsis")
        return text

    def _row(self, line: TaskLine) -> Text:
        """Columns of fixed width, so that nothing moves sideways; the note gives way first."""
        symbol, style, word = _LOOKS[line.state]
        width = self._width()
        name = Text(_indented(line), style=style)
        name_cells = max(1, min(self._longest, width - FIXED_CELLS))
        name.truncate(name_cells, overflow="ellipsis", pad=True)
        attempt = f"attempt {line.attempt}" if line.attempt > 1 else ""
        numbers = f" {self._elapsed(line):>{TOOK_CELLS}} {attempt:<{ATTEMPT_CELLS}}"
        row = Text.assemble(self._icon(line, symbol, style), " ", name, (numbers, "dim"))
        room = width - row.cell_len - 1
        note = self._remark(line, word, with_bar=room >= BAR_ROOM_CELLS)
        if not note or room < 2:
            return row
        note.truncate(room, overflow="ellipsis")
        return Text.assemble(row, " ", note)

    def _icon(self, line: TaskLine, symbol: str, style: str) -> Text:
        if line.state is not TaskState.RUNNING:
            return Text(symbol, style=style)
        turned = self._spinner.render(self._now / SECOND)
        assert isinstance(turned, Text), "a spinner without words is text"
        return turned

    def _elapsed(self, line: TaskLine) -> str:
        if line.started_at is None:
            return ""
        if line.state is TaskState.RUNNING:
            return duration(self._now - line.started_at)
        return duration(line.ended_at - line.started_at) if line.ended_at is not None else ""

    def _remark(self, line: TaskLine, word: str, *, with_bar: bool) -> Text:
        match line.state:
            case TaskState.RUNNING if line.progress is not None:
                filled = round(12 * min(1.0, max(0.0, line.progress)))
                bar = "█" * filled + "░" * (12 - filled) + " " if with_bar else ""
                return Text(f"{bar}{line.progress:4.0%} {first_line(line.note, 60)}")
            case TaskState.FAILED | TaskState.BACKOFF:
                return Text(f"{word}: {first_line(line.note, 100)}", style="red")
            case TaskState.READY if line.lack:
                return Text(first_line(line.lack, 100), style="yellow")
            case TaskState.PENDING if line.joins:
                return Text(f"after {line.joins}", style="dim")
            case TaskState.SUCCEEDED | TaskState.PENDING | TaskState.RUNNING:
                return Text("")
            case _:
                return Text(word, style="dim")


def _indented(line: TaskLine) -> str:
    return "  " * min(line.depth, DEPTH_MAX) + printable(line.name)
