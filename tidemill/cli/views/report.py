"""Runs and tasks in full, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tidemill.cli.views.text import (
    clock_time,
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
from tidemill.domain.plan import Plan
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.task_run import ALONE, TaskError, TaskKind, TaskRun, TaskState
from tidemill.protocol.messages import ProgressReport
from tidemill.runtime.inspection import RunPicture, TaskReport, parents_awaited
from tidemill.runtime.leftovers import LEFT

VALUE_CHARACTERS_MAX = 20_000
INPUT_CHARACTERS_MAX = 2_000
INDENT = "    "


def run_heading(run: Run, now: Moment, *, owned: bool) -> Iterator[str]:
    """What a run is and where it stands; not `owned` when no process works on its store."""
    yield f"run       {run.id}"
    yield f"workflow  {printable(run.workflow)}"
    yield f"state     {run_state(run, owned=owned)}"
    yield f"created   {date_time(run.created_at)}"
    if run.started_at is not None:
        yield f"took      {duration((run.ended_at or now) - run.started_at)}"
    if run.generation > 1:
        yield f"reopened  {plural(run.generation - 1, 'time')}"
    if run.labels:
        labels = ", ".join(f"{name}={value}" for name, value in sorted(run.labels.items()))
        yield f"labels    {printable(labels)}"


def run_input(data: bytes) -> Iterator[str]:
    """The input of a run, unless there was none."""
    if data not in {b"", b"null", b"{}"}:
        yield from ("", "input", *_indented(json_text(data, INPUT_CHARACTERS_MAX)))


def run_state(run: Run, *, owned: bool) -> str:
    """The state of a run in a word, and why it is not moving if it is not."""
    if run.state in RUN_ENDED:
        return ending(run.state, run.reason)
    if run.quarantine is not None:
        return f"{run.state} ({printable(run.quarantine)})"
    if not owned:
        return f"{run.state} ({LEFT})"
    return (
        f"{run.state} (stopping: {because(run.stop)})" if run.stop is not None else str(run.state)
    )


def task_table(
    picture: RunPicture, rows_max: int, now: Moment, width: int | None = None
) -> Iterator[str]:
    """The tasks of a run, what each waiting one waits for, and how far the running ones are."""
    plan, tasks = picture.plan, picture.tasks
    seen = [task for task in tasks.values() if task.kind is TaskKind.TASK or _went_wrong(task)]
    chosen = seen if len(seen) <= rows_max else _most_telling(seen, rows_max)
    rows = [
        (
            printable(plan.nodes[task.node].id),
            str(task.state),
            str(task.epoch) if task.epoch else "",
            _took(task, now),
            _remark(task, picture, now),
        )
        for task in chosen
    ]
    yield from table(("TASK", "STATE", "ATTEMPTS", "TOOK", ""), rows, width)
    if len(chosen) < len(seen):
        yield f"… {plural(len(seen) - len(chosen), 'task')} more: --all shows every one"
    missing = len(plan.nodes) - len(tasks)
    if missing > 0:
        yield f"… {plural(missing, 'task')} not written yet"


def run_output(run: Run, output: bytes | None) -> Iterator[str]:
    """The result of a run that succeeded, when its workflow says what that is."""
    if output is not None and run.state is RunState.SUCCEEDED:
        yield from ("", "output", *_indented(json_text(output, VALUE_CHARACTERS_MAX)))


def task_report(report: TaskReport, now: Moment) -> Iterator[str]:
    """One task with all that is kept about it; the failure last, where the eye ends."""
    task = report.task
    yield f"task      {printable(report.name)}"
    yield f"run       {report.run.id} ({printable(report.run.workflow)})"
    yield f"state     {ending(task.state, task.reason)}"
    yield f"executor  {printable(report.executor)}"
    yield f"attempts  {task.epoch}"
    yield f"took      {_took(task, now)}" if task.started_at is not None else "took      -"
    if report.params:
        yield from _block("params", report.params)
    yield from _block("input", report.input)
    yield from _earlier_attempts(report)
    if report.logs.get(task.epoch):
        yield from _text(f"output of attempt {task.epoch}", report.logs[task.epoch])
    if report.result is not None:
        yield "result"
        yield from _indented(json_text(bytes(report.result), VALUE_CHARACTERS_MAX))
    elif task.state is TaskState.SUCCEEDED:
        yield from ("result", f"{INDENT}null")
    if task.error is not None:
        yield from _error("error", task.error)


def failure_report(report: TaskReport) -> Iterator[str]:
    """How a failed run ends: the failing task's output, input and the user's own traceback."""
    task = report.task
    tried = after_attempts(task.epoch)
    yield f"task {printable(report.name)} failed {tried}: {because(task.reason)}"
    if report.logs.get(task.epoch):
        yield from _text("output", report.logs[task.epoch])
    yield from _block("input", report.input)
    if task.error is not None:
        yield from _error("error", task.error)


def waits_for(task: TaskRun, plan: Plan, tasks: Mapping[int, TaskRun], now: Moment) -> str:
    """What a task that has not begun waits for."""
    match task.state:
        case TaskState.PENDING:
            awaited = parents_awaited(task, plan, tasks)
            return f"waits for {listing(awaited)}" if awaited else "waits to be told of its parents"
        case TaskState.BACKOFF if task.due_at is not None:
            at = f"{clock_time(task.due_at)} (in {duration(task.due_at - now)})"
            return f"waits to try again at {at}"
        case TaskState.READY if task.hold == ALONE:
            return "waits for a worker that runs nothing else: it has lost several"
        case TaskState.READY if task.hold is not None:
            return f"held: {printable(task.hold)}"
        case TaskState.READY:
            queue, _, labels = task.route.partition("?")
            having = f" and has {labels.replace('&', ', ')}" if labels else ""
            return printable(f"waits for a free slot of a worker that serves {queue}{having}")
        case _:
            return ""


def _remark(task: TaskRun, picture: RunPicture, now: Moment) -> str:
    if task.error is not None and task.state is not TaskState.BACKOFF:
        return first_line(f"{task.error.type}: {task.error.message}")
    if task.state is TaskState.RUNNING:
        return _progress(picture.progress.get(task.position))
    abandoned = not picture.owned or picture.run.quarantine == LEFT
    if abandoned and task.state is TaskState.READY:
        return "waits for `tidemill resume`"
    waits = waits_for(task, picture.plan, picture.tasks, now)
    return f"{waits}; {first_line(task.error.message, 60)}" if task.error and waits else waits


def _progress(report: ProgressReport | None) -> str:
    return f"{report.fraction:.0%} {first_line(report.message, 60)}".strip() if report else ""


def _took(task: TaskRun, now: Moment) -> str:
    if task.started_at is None or task.state in {TaskState.READY, TaskState.BACKOFF}:
        return ""
    return duration((task.ended_at or now) - task.started_at)


def _went_wrong(task: TaskRun) -> bool:
    return task.state is TaskState.FAILED


def _most_telling(tasks: list[TaskRun], rows_max: int) -> list[TaskRun]:
    """Failures, but not all when there are many, then what moves, then what waits; in order."""
    order = {state: place for place, state in enumerate(_TELLING)}
    ranked = sorted(tasks, key=lambda task: (order.get(task.state, len(order)), task.position))
    failed = sum(_went_wrong(task) for task in tasks)
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


def _earlier_attempts(report: TaskReport) -> Iterator[str]:
    for attempt in report.attempts:
        took = "" if attempt.started_at is None else duration(attempt.ended_at - attempt.started_at)
        yield f"attempt {attempt.epoch}: {because(attempt.reason)} after {took or 'no time'}"
        if report.logs.get(attempt.epoch):
            yield from _text("  output", report.logs[attempt.epoch])
        if attempt.error is not None:
            yield from _error("  error", attempt.error)


def _error(title: str, error: TaskError) -> Iterator[str]:
    if error.traceback:
        yield from _text(title, error.traceback)
    else:
        yield from _text(title, f"{error.type}: {error.message}")


def _block(title: str, value: Any) -> Iterator[str]:
    yield title
    yield from _indented(json_text(msgspec.json.encode(value), VALUE_CHARACTERS_MAX))


def _text(title: str, text: str) -> Iterator[str]:
    yield title
    yield from _indented(printable_block(text.rstrip("\n")))


def _indented(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield INDENT + line
