"""A run as plain lines, for logs, pipes and terminals that cannot redraw."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice

from tidemill.cli.views.model import RunModel, TaskLine
from tidemill.cli.views.text import clock_time, duration, first_line, plural, printable
from tidemill.cli.views.words import after_attempts, because
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.domain.task_run import TaskState

EVERY_TASK_MAX = 200
"""Runs with more tasks than this tell only what goes wrong, and how far they are."""

NOTICES_HELD_MAX = 100
LACKS_LOOKED_AT_MAX = 20
_PROGRESS_EVERY = 2 * SECOND
_NOTICE_HELD = SECOND * 3 // 10
"""What happened before a notice is told within this time, since facts come through the store."""

_TROUBLE = frozenset({FactType.TASK_RETRYING, FactType.TASK_FAILED})
_QUIET = frozenset({FactType.TASK_READY, FactType.TASK_REOPENED})


class LineView:
    """Prints one line for each thing that happens."""

    def __init__(self, model: RunModel, write: Callable[[str], None]) -> None:
        self._model = model
        self._write = write
        self._brief = len(model.order) > EVERY_TASK_MAX
        names = (model.lines[position].name for position in model.order)
        self._width = min(32, max(map(len, names), default=0))
        self._told_at: Moment = 0
        self._held: deque[tuple[Moment, str]] = deque()
        self._lacks: set[tuple[int, str]] = set()  # told already

    def __enter__(self) -> LineView:
        return self

    def __exit__(self, *_: object) -> None:
        while self._held:
            self._release()

    def show(self, fact: Fact, line: TaskLine | None) -> None:
        """Tell one fact that the model has taken in."""
        self._release_until(fact.at)
        if line is None or fact.type in _QUIET:
            return
        if not self._brief or fact.type in _TROUBLE:
            self._write(f"{clock_time(fact.at)}  {self._name(line)}  {_happened(fact, line)}")
        elif fact.at >= self._told_at + _PROGRESS_EVERY:
            self._told_at = fact.at
            self._write(f"{clock_time(fact.at)}  {_counts(self._model)}")

    def notice(self, text: str, now: Moment) -> None:
        """Tell something that is not about a task, in its turn."""
        self._held.append((now, printable(text)))
        if len(self._held) > NOTICES_HELD_MAX:
            self._release()

    def refresh(self, now: Moment) -> None:
        """Nothing moves between two lines; notices have waited long enough."""
        self._release_until(now - _NOTICE_HELD)
        for position in islice(self._model.by_state[TaskState.READY], LACKS_LOOKED_AT_MAX):
            line = self._model.lines[position]
            if line.lack and (position, line.lack) not in self._lacks:
                self._lacks.add((position, line.lack))
                self._write(f"{clock_time(now)}  {self._name(line)}  waits: {printable(line.lack)}")

    def _release_until(self, moment: Moment) -> None:
        while self._held and self._held[0][0] <= moment:
            self._release()

    def _release(self) -> None:
        at, text = self._held.popleft()
        self._write(f"{clock_time(at)}  {text}")

    def _name(self, line: TaskLine) -> str:
        return printable(line.name).ljust(self._width)


def _happened(fact: Fact, line: TaskLine) -> str:
    attempt = f" (attempt {line.attempt})" if line.attempt > 1 else ""
    match fact.type:
        case FactType.TASK_STARTED:
            return f"started{attempt}"
        case FactType.TASK_COMPLETED:
            took = duration(fact.at - line.started_at) if line.started_at is not None else "?"
            return f"succeeded in {took}{attempt}"
        case FactType.TASK_RETRYING if fact.state == TaskState.READY:
            return f"lost its worker in attempt {line.attempt}, runs again"
        case FactType.TASK_RETRYING:
            return f"attempt {line.attempt} failed, trying again: {first_line(fact.error or '')}"
        case FactType.TASK_FAILED:
            tried = after_attempts(line.attempt)
            return f"FAILED {tried}: {because(fact.reason)}: {first_line(fact.error or '')}"
        case _:
            return fact.state.lower().replace("_", " ")


def _counts(model: RunModel) -> str:
    parts = [f"{count:,} {state.lower().replace('_', ' ')}" for state, count in model.counts()]
    return f"{model.ended:,} of {plural(len(model.order), 'task')} ended: {', '.join(parts)}"
