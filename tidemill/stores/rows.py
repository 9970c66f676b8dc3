"""Rows to values and back, alike for every database. A row that makes no sense is a MalformedRun.

The order of columns is that of the queries, which is that of the fields of the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidemill.domain.errors import MalformedRun
from tidemill.domain.identifiers import RunId, SessionId, Token, VersionId
from tidemill.domain.run import Run, RunKind, RunState
from tidemill.domain.task_run import Attempt, Reason, TaskError, TaskKind, TaskRun, TaskState
from tidemill.ports.store import HeldTask, NewRun, Session, StartKey, Version
from tidemill.stores.statements import Row

RUN_WIDTH = 25
"""Columns of a run, where those of one of its tasks follow."""

_RUN_STATES: Mapping[Any, RunState] = {str(state): state for state in RunState}
_RUN_KINDS: Mapping[Any, RunKind] = {str(kind): kind for kind in RunKind}
_TASK_STATES: Mapping[Any, TaskState] = {str(state): state for state in TaskState}
_KINDS: Mapping[Any, TaskKind] = {str(kind): kind for kind in TaskKind}
_REASONS: Mapping[Any, Reason | None] = {None: None} | {str(reason): reason for reason in Reason}

_encode = msgspec.json.Encoder().encode
_decode_error = msgspec.json.Decoder(TaskError).decode
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode
_decode_queues = msgspec.json.Decoder(tuple[str, ...]).decode
_UNREADABLE = (KeyError, TypeError, ValueError, msgspec.DecodeError)


def run_from_row(row: Row) -> Run:
    """A run as stored."""
    try:
        # In the order of the fields: by their names it would take ten times as long.
        return Run(
            row[0],  # id
            row[1],  # namespace
            row[2],  # workflow
            row[3],  # version_id
            _RUN_STATES[row[4]],  # state
            row[5],  # open
            row[8],  # next_position
            row[16],  # created_at
            row[6],  # failed
            row[7],  # ended
            row[9],  # told
            _REASONS[row[10]],  # stop
            row[11],  # generation
            row[12],  # quarantine
            _decode_labels(row[13]),  # labels
            row[14],  # parent_run
            row[15],  # parent_position
            row[17],  # due_at
            row[18],  # started_at
            row[19],  # ended_at
            _REASONS[row[20]],  # reason
            row[21],  # format
            row[24],  # swept
            _RUN_KINDS[row[22]],  # kind
            row[23],  # key
        )
    except _UNREADABLE as error:
        raise MalformedRun(str(row[0]), f"its row cannot be read: {error!r}") from error


def new_run_to_row(new: NewRun) -> Row:
    """All columns of a run, its input last."""
    run = new.run
    return (
        run.id,
        run.namespace,
        run.workflow,
        run.version_id,
        run.state.value,
        run.open,
        run.failed,
        run.ended,
        run.next_position,
        run.told,
        run.stop,
        run.generation,
        run.quarantine,
        _text(run.labels),
        run.parent_run,
        run.parent_position,
        run.created_at,
        run.due_at,
        run.started_at,
        run.ended_at,
        run.reason,
        run.format,
        run.kind.value,
        run.key,
        run.swept,
        new.input,
    )


def run_to_shared_row(run: Run) -> Row:
    """The columns that runs have in common which begin alike: all but id, key and input."""
    row = new_run_to_row(NewRun(run=run, input=b""))
    return (*row[1:23], row[24])


def run_to_changes(run: Run) -> Row:
    """The key of a run and the columns that may change."""
    return (
        run.id,
        run.state.value,
        run.open,
        run.failed,
        run.ended,
        run.next_position,
        run.told,
        run.stop,
        run.generation,
        run.due_at,
        run.started_at,
        run.ended_at,
        run.reason,
        run.format,
        run.swept,
    )


def task_from_row(row: Row) -> TaskRun:
    """A task as stored."""
    try:
        # In the order of the fields: by their names it would take ten times as long.
        return TaskRun(
            row[0],  # run_id
            row[1],  # position
            row[2],  # namespace
            row[3],  # node
            _TASK_STATES[row[5]],  # state
            row[13],  # route
            _KINDS[row[4]],  # kind
            row[6],  # epoch
            row[7],  # failures
            row[8],  # losses
            row[9],  # waiting
            row[10],  # failed
            row[11],  # skipped
            row[12],  # told
            row[14],  # priority
            row[15],  # hold
            row[16],  # due_at
            row[17],  # session_id
            row[18],  # ready_at
            row[19],  # started_at
            row[20],  # ended_at
            row[21],  # ended_no
            _REASONS[row[22]],  # reason
            _error_from_text(row[23]),  # error
            row[24],  # format
        )
    except _UNREADABLE as error:
        message = f"the row of task {row[1]} cannot be read: {error!r}"
        raise MalformedRun(str(row[0]), message) from error


def task_to_row(task: TaskRun) -> Row:
    """All columns of a task."""
    return (
        task.run_id,
        task.position,
        task.namespace,
        task.node,
        task.kind.value,
        task.state.value,
        task.epoch,
        task.failures,
        task.losses,
        task.waiting,
        task.failed,
        task.skipped,
        task.told,
        task.route,
        task.priority,
        task.hold,
        task.due_at,
        task.session_id,
        task.ready_at,
        task.started_at,
        task.ended_at,
        task.ended_no,
        task.reason,
        _error_to_text(task.error),
        task.format,
    )


def task_to_changes(task: TaskRun) -> Row:
    """The key of a task and the columns that may change: all but namespace, node and kind."""
    return (
        task.run_id,
        task.position,
        task.state.value,
        task.epoch,
        task.failures,
        task.losses,
        task.waiting,
        task.failed,
        task.skipped,
        task.told,
        task.route,
        task.priority,
        task.hold,
        task.due_at,
        task.session_id,
        task.ready_at,
        task.started_at,
        task.ended_at,
        task.ended_no,
        task.reason,
        _error_to_text(task.error),
        task.format,
    )


def attempt_from_row(row: Row) -> Attempt:
    """An earlier attempt as stored."""
    try:
        return _attempt_from_row(row)
    except _UNREADABLE as error:
        message = f"an attempt of task {row[1]} cannot be read: {error!r}"
        raise MalformedRun(str(row[0]), message) from error


def _attempt_from_row(row: Row) -> Attempt:
    return Attempt(
        run_id=row[0],
        position=row[1],
        epoch=row[2],
        attempt=row[3],
        reason=Reason(row[4]),
        session_id=row[5],
        started_at=row[6],
        ended_at=row[7],
        error=_error_from_text(row[8]),
    )


def attempt_to_row(attempt: Attempt) -> Row:
    """All columns of an earlier attempt but its namespace, which is that of the run."""
    return (
        attempt.run_id,
        attempt.position,
        attempt.epoch,
        attempt.attempt,
        attempt.reason.value,
        attempt.session_id,
        attempt.started_at,
        attempt.ended_at,
        _error_to_text(attempt.error),
    )


def session_from_row(row: Row) -> Session:
    """A session as stored."""
    return Session(
        id=SessionId(row[0]),
        namespace=row[1],
        worker=row[2],
        scheduler=row[3],
        secret_hash=row[4],
        slots=row[5],
        queues=_decode_queues(row[6]),
        labels=_decode_labels(row[7]),
        opened_at=row[8],
        expires_at=row[9],
        closed_at=row[10],
        successor=row[11],
        offers=_decode_queues(row[12]),
    )


def session_to_row(session: Session) -> Row:
    """All columns of a session."""
    return (
        session.id,
        session.namespace,
        session.worker,
        session.scheduler,
        session.secret_hash,
        session.slots,
        _text(session.queues),
        _text(session.labels),
        session.opened_at,
        session.expires_at,
        session.closed_at,
        session.successor,
        _text(session.offers),
    )


def held_task_from_row(row: Row) -> HeldTask:
    """A grant as stored."""
    return HeldTask(Token(*row[:3]), row[3], bool(row[4]))


def version_from_row(row: Row) -> Version:
    """A definition as stored."""
    return Version(
        id=VersionId(row[0]), namespace=row[1], name=row[2], spec=row[3], created_at=row[4]
    )


def version_to_row(version: Version) -> Row:
    """All columns of a definition."""
    return (version.id, version.namespace, version.name, version.spec, version.created_at)


def start_key_from_row(row: Row) -> StartKey:
    """A start key as stored."""
    return StartKey(
        namespace=row[0],
        kind=row[1],
        key=row[2],
        body_hash=row[3],
        run_id=RunId(row[4]),
        expires_at=row[5],
    )


def start_key_to_row(key: StartKey) -> Row:
    """All columns of a start key."""
    return (key.namespace, key.kind, key.key, key.body_hash, key.run_id, key.expires_at)


def _error_from_text(text: str | None) -> TaskError | None:
    return None if text is None else _decode_error(text)


def _error_to_text(error: TaskError | None) -> str | None:
    # JSON escapes the NUL characters that user code may put into a message; PostgreSQL has none.
    return None if error is None else _text(error)


def _text(value: object) -> str:
    return _encode(value).decode()
