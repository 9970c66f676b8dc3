"""Runs and tasks as the query service shows them."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from tidemill.domain.identifiers import Moment
from tidemill.domain.plan import Node
from tidemill.domain.run import Run
from tidemill.domain.task_run import Attempt, TaskError, TaskRun
from tidemill.protocol.generated import query_pb2 as wire


def run_view(run: Run) -> wire.Run:
    """A run on the wire."""
    return wire.Run(
        id=run.id,
        namespace=run.namespace,
        workflow=run.workflow,
        version=run.version_id,
        state=run.state.value,
        reason=run.reason or "",
        open_tasks=run.open,
        failed_tasks=run.failed,
        ended_tasks=run.ended,
        generation=run.generation,
        stopping=run.stop is not None,
        quarantine=run.quarantine or "",
        labels=run.labels,
        created_at=time_view(run.created_at),
        started_at=time_view(run.started_at),
        ended_at=time_view(run.ended_at),
    )


def task_view(task: TaskRun, node: Node) -> wire.Task:
    """A task on the wire, under its name in the definition."""
    return wire.Task(
        run_id=task.run_id,
        position=task.position,
        id=node.id,
        executor=node.spec.executor,
        state=task.state.value,
        reason=task.reason or "",
        attempt=task.attempt,
        epoch=task.epoch,
        failures=task.failures,
        losses=task.losses,
        hold=task.hold or "",
        error=_error(task.error),
        ready_at=time_view(task.ready_at),
        started_at=time_view(task.started_at),
        ended_at=time_view(task.ended_at),
        due_at=time_view(task.due_at),
    )


def attempt_view(attempt: Attempt) -> wire.Attempt:
    """An earlier attempt on the wire."""
    return wire.Attempt(
        attempt=attempt.attempt,
        epoch=attempt.epoch,
        reason=attempt.reason.value,
        error=_error(attempt.error),
        started_at=time_view(attempt.started_at),
        ended_at=time_view(attempt.ended_at),
    )


def _error(error: TaskError | None) -> wire.TaskError | None:
    if error is None:
        return None
    return wire.TaskError(type=error.type, message=error.message, traceback=error.traceback)


def time_view(moment: Moment | None) -> Timestamp | None:
    """A moment; left out when there is none."""
    if moment is None:
        return None
    seconds, micros = divmod(moment, 1_000_000)
    return Timestamp(seconds=seconds, nanos=micros * 1_000)
