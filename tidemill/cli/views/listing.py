"""Lists of runs and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tidemill.cli.output import say
from tidemill.cli.views.report import run_state
from tidemill.cli.views.text import (
    date_time,
    duration,
    first_line,
    printable,
    short_date_time,
    short_id,
    table,
)
from tidemill.cli.views.words import because
from tidemill.domain.identifiers import Moment
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun

NARROW = 100
"""Below this width runs are named by the end of their ids, which every command takes as well."""


def run_rows(
    runs: Sequence[Run], now: Moment, *, owned: bool, width: int | None = None
) -> Iterator[str]:
    """One line per run; not `owned` when no process works on the store."""
    if not runs:
        yield "no runs"
        return
    narrow = width is not None and width < NARROW
    rows = [
        (
            short_id(run.id) if narrow else run.id,
            printable(run.workflow),
            short_date_time(run.created_at) if narrow else date_time(run.created_at),
            duration((run.ended_at or now) - run.started_at) if run.started_at else "",
            run_state(run, owned=owned),
        )
        for run in runs
    ]
    yield from table(("RUN", "WORKFLOW", "CREATED", "TOOK", "STATE"), rows, width, names=1)


def dead_rows(
    letters: Sequence[TaskRun], names: Sequence[str], width: int | None = None
) -> Iterator[str]:
    """One line per dead letter."""
    if not letters:
        yield "no dead letters"
        return
    narrow = width is not None and width < NARROW
    rows = [
        (
            short_id(letter.run_id) if narrow else letter.run_id,
            printable(name),
            short_date_time(letter.ended_at or 0) if narrow else date_time(letter.ended_at or 0),
            str(letter.epoch),
            f"{because(letter.reason)}: {_error(letter)}",
        )
        for letter, name in zip(letters, names, strict=True)
    ]
    yield from table(("RUN", "TASK", "FAILED AT", "ATTEMPTS", "WHY"), rows, width, names=1)


def _error(letter: TaskRun) -> str:
    return first_line(f"{letter.error.type}: {letter.error.message}") if letter.error else ""


def print_json(value: Any) -> None:
    """Print a value for programs."""
    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
