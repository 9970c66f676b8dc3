"""Runs and tasks in full, as text; everything comes from what the API tells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from tidemill.cli.views.text import (
    date_time,
    duration,
    first_line,
    json_text,
    listing,
    plural,
    printable,
    printable_block,
    table,
)
from tidemill.cli.views.words import after_attempts, because, ending
from tidemill.domain.identifiers import Moment
from tidemill.domain.run import RunState
from tidemill.domain.task_run import ENDED, TaskState
from tidemill.protocol.cloud_events import moment_of
from tidemill.protocol.resources import (
    AttemptView,
    ErrorView,
    JobView,
    RunKind,
    RunView,
    TaskDetails,
    TaskView,
)
from tidemill.runtime.leftovers import LEFT

VALUE_CHARACTERS_MAX = 20_000
INPUT_CHARACTERS_MAX = 2_000
INDENT = "    "


def run_heading(run: RunView, now: Moment, *, served: bool) -> Iterator[str]:
    """What a run is and where it stands; not `served` when no process works on its store."""
    yield f"run       {run.id}"
    yield f"workflow  {run_name(run)}{_version(run)}"
    yield f"state     {run_state(run, served=served)}"
    yield f"created   {date_time(moment_of(run.created_at))}"
    if run.started_at is not None:
        yield f"took      {took(run.started_at, run.ended_at, now)}"
    if run.generation > 1:
        yield f"reopened  {plural(run.generation - 1, 'time')}"
    if run.kind is not RunKind.RUN:
        yield f"kind      {run.kind}"
    if run.key is not None:
        yield f"key       {printable(run.key)}"
    if run.labels:
        labels = ", ".join(f"{name}={value}" for name, value in sorted(run.labels.items()))
        yield f"labels    {printable(labels)}"


def run_name(run: RunView) -> str:
    """What people call the run's workflow."""
    return printable(run.title or run.workflow)


def run_input(run: RunView) -> Iterator[str]:
    """The input of a run, unless there was none."""
    if run.input not in (UNSET, None, {}):
        yield from ("", "input", *_indented(_json(run.input, INPUT_CHARACTERS_MAX)))


def run_state(run: RunView, *, served: bool) -> str:
    """The state of a run in a word, and why it is not moving if it is not."""
    if run.ended:
        return ending(run.state, run.reason)
    if run.quarantine is not None:
        return f"{run.state} ({printable(run.quarantine)})"
    if not served:
        return f"{run.state} ({LEFT})"
    return f"{run.state} (stopping: {because(run.reason)})" if run.stopping else str(run.state)


def task_table(
    tasks: Sequence[TaskView], rows_max: int, now: Moment, width: int | None = None
) -> Iterator[str]:
    """The tasks of a run, what each waiting one waits for, and how far the running ones are."""
    chosen = tasks if len(tasks) <= rows_max else _most_telling(tasks, rows_max)
    open_ones = {task.id for task in tasks if task.state not in ENDED}
    rows = [
        (
            task_name(task),
            str(task.state),
            str(task.epoch) if task.epoch else "",
            _took(task, now),
            _remark(task, open_ones),
        )
        for task in chosen
    ]
    yield from table(("TASK", "STATE", "ATTEMPTS", "TOOK", ""), rows, width)
    if len(chosen) < len(tasks):
        yield f"… {plural(len(tasks) - len(chosen), 'task')} more: --all shows every one"


def task_name(task: TaskView) -> str:
    """What people call a task."""
    return printable(task.title or task.id)


def run_output(run: RunView) -> Iterator[str]:
    """The result of a run that succeeded, when it says anything."""
    if run.state is RunState.SUCCEEDED and _says_something(run.result):
        yield from ("", "output", *_indented(_json(run.result, VALUE_CHARACTERS_MAX)))


def task_report(details: TaskDetails, run: RunView, now: Moment) -> Iterator[str]:
    """One task with all that is kept about it; the failure last, where the eye ends."""
    task = details.task
    yield f"task      {task_name(task)}"
    yield f"run       {run.id} ({run_name(run)})"
    yield f"state     {ending(task.state, task.reason)}"
    for reason in task.waiting_for:
        yield f"          {printable(reason.message)}"
    yield f"executor  {printable(task.executor)}"
    yield f"attempts  {task.epoch}"
    yield f"took      {_took(task, now) or '-'}"
    if task.worker is not None:
        yield f"worker    {printable(task.worker)}"
    if details.params:
        yield from _block("params", details.params)
    if details.input is not UNSET:
        yield from _block("input", details.input)
    for attempt in details.attempts[:-1]:
        yield from _earlier_attempt(attempt)
    if details.attempts and (last := details.attempts[-1]).output:
        yield from _text(f"output of attempt {last.epoch}", last.output)
    if details.result is not UNSET:
        yield from _block("result", details.result)
    if task.error is not None:
        yield from _error("error", task.error)


def failure_report(details: TaskDetails) -> Iterator[str]:
    """How a failed run ends: the failing task's output, input and the user's own traceback."""
    task = details.task
    yield f"task {task_name(task)} failed {after_attempts(task.epoch)}: {because(task.reason)}"
    if details.attempts and details.attempts[-1].output:
        yield from _text("output", details.attempts[-1].output)
    if details.input is not UNSET:
        yield from _block("input", details.input)
    if task.error is not None:
        yield from _error("error", task.error)


def job_report(job: JobView, now: Moment) -> Iterator[str]:
    """One job with its payload and what it led to."""
    yield f"job       {job.id}"
    yield f"type      {printable(job.type)}"
    yield f"state     {job.state}"
    yield f"created   {date_time(moment_of(job.created_at))}"
    yield f"attempt   {job.attempt} of {job.max_retries + 1}"
    if job.started_at is not None:
        yield f"took      {took(job.started_at, job.ended_at, now)}"
    if job.worker is not None:
        yield f"worker    {printable(job.worker)}"
    if job.payload is not UNSET:
        yield from _block("payload", job.payload)
    if job.result is not UNSET:
        yield from _block("result", job.result)
    if job.error is not None:
        yield from _error("error", job.error)


def took(began: datetime, ended: datetime | None, now: Moment) -> str:
    """How long something took, or has taken until now."""
    return duration((moment_of(ended) if ended is not None else now) - moment_of(began))


def _says_something(result: Any) -> bool:
    """Whether there is more in it than last tasks without results."""
    nothing = result is UNSET or result is None
    return not nothing and not (
        isinstance(result, dict) and all(one is None for one in result.values())
    )


def _version(run: RunView) -> str:
    return "" if run.version is None else f" (version {run.version})"


def _remark(task: TaskView, open_ones: Collection[str]) -> str:
    awaited = [name for name in task.depends_on if name in open_ones]
    if awaited and task.state is TaskState.PENDING:
        return f"waits for {listing(awaited)}"
    failed = first_line(f"{task.error.type}: {task.error.message}") if task.error else ""
    if failed and task.state is not TaskState.BACKOFF:
        return failed
    if task.progress is not None and task.state is TaskState.RUNNING:
        return f"{task.progress.fraction:.0%} {first_line(task.progress.message, 60)}".strip()
    waits = "; ".join(first_line(reason.message) for reason in task.waiting_for)
    return f"{waits}; {first_line(task.error.message, 60)}" if task.error and waits else waits


def _took(task: TaskView, now: Moment) -> str:
    if task.started_at is None or task.state in {TaskState.READY, TaskState.BACKOFF}:
        return ""
    return took(task.started_at, task.ended_at, now)


def _most_telling(tasks: Sequence[TaskView], rows_max: int) -> list[TaskView]:
    """Failures, but not all when there are many, then what moves, then what waits; in order."""
    order = {state: place for place, state in enumerate(_TELLING)}
    ranked = sorted(tasks, key=lambda task: (order.get(task.state, len(order)), task.position))
    failed = sum(task.state is TaskState.FAILED for task in tasks)
    kept = min(failed, rows_max // 2)
    chosen = [*ranked[:kept], *ranked[failed:], *ranked[kept:failed]][:rows_max]
    return sorted(chosen, key=lambda task: task.position)


_TELLING = (
    TaskState.FAILED,
    TaskState.RUNNING,
    TaskState.CANCELLING,
    TaskState.BACKOFF,
    TaskState.READY,
    TaskState.PENDING,
)


def _earlier_attempt(attempt: AttemptView) -> Iterator[str]:
    spent = "no time"
    if attempt.started_at is not None and attempt.ended_at is not None:
        spent = duration(moment_of(attempt.ended_at) - moment_of(attempt.started_at))
    yield f"attempt {attempt.epoch}: {because(attempt.reason)} after {spent}"
    if attempt.output:
        yield from _text("  output", attempt.output)
    if attempt.error is not None:
        yield from _error("  error", attempt.error)


def _error(title: str, error: ErrorView) -> Iterator[str]:
    if error.traceback:
        yield from _text(title, error.traceback)
    else:
        yield from _text(title, f"{error.type}: {error.message}")


def _block(title: str, value: Any) -> Iterator[str]:
    yield title
    yield from _indented(_json(value, VALUE_CHARACTERS_MAX))


def _json(value: Any, characters_max: int) -> str:
    return json_text(msgspec.json.encode(value), characters_max)


def _text(title: str, text: str) -> Iterator[str]:
    yield title
    yield from _indented(printable_block(text.rstrip("\n")))


def _indented(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield f"{INDENT}{line}"
