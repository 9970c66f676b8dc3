"""Lists of runs and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from tidemill.cli.views.report import run_state
from tidemill.cli.views.text import date_time, duration, first_line, printable, table
from tidemill.domain.identifiers import Moment
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun


def run_rows(runs: Sequence[Run], now: Moment, *, owned: bool) -> Iterator[str]:
    """One line per run; not `owned` when no process works on the store."""
    if not runs:
        yield "no runs"
        return
    rows = [
        (
            run.id,
            printable(run.workflow),
            date_time(run.created_at),
            duration((run.ended_at or now) - run.started_at) if run.started_at else "",
            run_state(run, owned=owned),
        )
        for run in runs
    ]
    yield from table(("RUN", "WORKFLOW", "CREATED", "TOOK", "STATE"), rows)


def dead_rows(letters: Sequence[TaskRun], names: Sequence[str]) -> Iterator[str]:
    """One line per dead letter."""
    if not letters:
        yield "no dead letters"
        return
    rows = [
        (
            letter.run_id,
            printable(name),
            str(letter.reason),
            str(letter.attempt),
            date_time(letter.ended_at or 0),
            first_line(f"{letter.error.type}: {letter.error.message}") if letter.error else "",
        )
        for letter, name in zip(letters, names, strict=True)
    ]
    yield from table(("RUN", "TASK", "REASON", "ATTEMPTS", "FAILED AT", "ERROR"), rows)


def print_json(value: Any) -> None:
    """Print a value for programs."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
