"""Lists: runs, jobs, dead letters, workers, queues, workflows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from tidemill.cli.output import say, width
from tidemill.cli.views.report import run_name, run_state, took
from tidemill.cli.views.text import (
    date_time,
    duration,
    first_line,
    listing,
    printable,
    short_date_time,
    short_id,
    table,
)
from tidemill.cli.views.words import because
from tidemill.domain.identifiers import Moment
from tidemill.protocol.cloud_events import moment_of
from tidemill.protocol.resources import (
    DeadLetterView,
    ErrorView,
    GroupView,
    JobView,
    QueueView,
    RunView,
    VersionView,
    WorkerView,
    WorkflowView,
)

NARROW = 100
"""Below this width runs are named by the end of their ids, which every command takes as well."""


def run_rows(
    runs: Sequence[RunView], now: Moment, *, served: bool, width: int | None = None
) -> Iterator[str]:
    """One line per run; not `served` when no process works on the store."""
    rows = [
        (
            _id(run.id, width),
            run_name(run),
            when(run.created_at, width),
            took(run.started_at, run.ended_at, now) if run.started_at else "",
            run_state(run, served=served),
        )
        for run in runs
    ]
    yield from _rows(("RUN", "WORKFLOW", "CREATED", "TOOK", "STATE"), rows, "runs", width)


def job_rows(jobs: Sequence[JobView], now: Moment, width: int | None = None) -> Iterator[str]:
    """One line per job."""
    rows = [
        (
            _id(job.id, width),
            printable(job.type),
            when(job.created_at, width),
            str(job.attempt),
            took(job.started_at, job.ended_at, now) if job.started_at else "",
            f"{job.state}{f': {_error(job.error)}' if job.error else ''}",
        )
        for job in jobs
    ]
    headings = ("JOB", "TYPE", "CREATED", "ATTEMPT", "TOOK", "STATE")
    yield from _rows(headings, rows, "jobs", width)


def dead_rows(letters: Sequence[DeadLetterView], width: int | None = None) -> Iterator[str]:
    """One line per dead letter."""
    rows = [
        (
            _id(letter.run_id, width),
            printable(letter.title or letter.task),
            when(letter.ended_at, width),
            str(letter.attempt),
            f"{because(letter.reason)}: {_error(letter.error)}",
        )
        for letter in letters
    ]
    headings = ("RUN", "TASK", "FAILED AT", "ATTEMPTS", "WHY")
    yield from _rows(headings, rows, "dead letters", width)


def group_rows(groups: Sequence[GroupView], width: int | None = None) -> Iterator[str]:
    """One line per group of dead letters."""
    rows = [
        (
            f"{group.count:,}",
            printable(group.workflow),
            printable(group.task),
            when(group.latest_at, width),
            printable(group.group),
            first_line(f"{group.type}: {group.message}"),
        )
        for group in groups
    ]
    headings = ("COUNT", "WORKFLOW", "TASK", "LATEST", "GROUP", "ERROR")
    yield from _rows(headings, rows, "dead letters", width)


def worker_rows(
    workers: Sequence[WorkerView], now: Moment, width: int | None = None
) -> Iterator[str]:
    """One line per worker."""
    rows = [
        (
            printable(worker.worker),
            f"{worker.running}/{worker.slots}",
            listing(worker.queues),
            listing([f"{name}={value}" for name, value in worker.labels.items()]) or "-",
            duration(now - moment_of(worker.opened_at)),
            listing(worker.offers, 6),
        )
        for worker in workers
    ]
    headings = ("WORKER", "BUSY", "QUEUES", "LABELS", "SINCE", "OFFERS")
    yield from _rows(headings, rows, "workers are connected", width)


def queue_rows(queues: Sequence[QueueView], now: Moment, width: int | None = None) -> Iterator[str]:
    """One line per queue."""
    rows = [
        (
            printable(queue.name),
            f"{queue.ready:,}",
            f"{queue.running:,}",
            f"{queue.held:,}",
            f"{queue.workers:,}",
            f"{queue.slots:,}",
            took(queue.oldest_ready_at, None, now) if queue.oldest_ready_at else "-",
        )
        for queue in queues
    ]
    headings = ("QUEUE", "READY", "RUNNING", "HELD", "WORKERS", "SLOTS", "OLDEST WAITS")
    yield from _rows(headings, rows, "queues", width, names=0)


def workflow_rows(workflows: Sequence[WorkflowView], width: int | None = None) -> Iterator[str]:
    """One line per workflow."""
    rows = [
        (
            printable(one.name),
            str(one.version),
            str(one.tasks) if one.tasks else "",
            when(one.changed_at, width),
            first_line(one.title or one.description),
        )
        for one in workflows
    ]
    headings = ("WORKFLOW", "VERSION", "TASKS", "CHANGED", "")
    yield from _rows(headings, rows, "workflows are deployed", width, names=0)


def version_rows(versions: Sequence[VersionView], width: int | None = None) -> Iterator[str]:
    """One line per version."""
    rows = [
        (
            str(one.number),
            when(one.created_at, width),
            printable(one.created_by or "-"),
            one.version_id,
        )
        for one in versions
    ]
    headings = ("VERSION", "CREATED", "BY", "CONTENT")
    yield from _rows(headings, rows, "versions", width, names=2)


def when(at: datetime | None, width: int | None) -> str:
    """A day and a time, shorter where there is little room."""
    if at is None:
        return "-"
    return short_date_time(moment_of(at)) if _narrow(width) else date_time(moment_of(at))


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """Print a list, fitted to the terminal."""
    for line in _rows(headings, rows, nothing, width()):
        say(line)


def print_json(value: Any) -> None:
    """Print a value for programs."""
    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _rows(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    nothing: str,
    width: int | None,
    *,
    names: int = 1,
) -> Iterator[str]:
    if not rows:
        yield f"no {nothing}"
        return
    yield from table(headings, rows, width, names=names)


def _id(run_id: str, width: int | None) -> str:
    return short_id(run_id) if _narrow(width) else run_id


def _narrow(width: int | None) -> bool:
    return width is not None and width < NARROW


def _error(error: ErrorView | None) -> str:
    return first_line(f"{error.type}: {error.message}") if error is not None else ""
