"""Rows of the store as resources on the wire: pure functions, nothing is read here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tidemill.domain.identifiers import Moment, SessionId
from tidemill.domain.plan import Node, Plan
from tidemill.domain.routes import read_route
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.domain.task_run import ENDED, Attempt, TaskError, TaskRun, TaskState
from tidemill.domain.workflow import OUTPUT_ID, Workflow
from tidemill.ports.queries import DeadGroup, Job, QueueRow, WorkerRow
from tidemill.ports.rows import Release, WorkflowRow
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources import (
    AttemptView,
    DeadLetterView,
    ErrorView,
    GroupView,
    JobView,
    ProgressView,
    QueueView,
    RunView,
    TaskView,
    Time,
    VersionView,
    WorkerView,
    WorkflowView,
)

ERROR_CHARACTERS_MAX = 1_000
OUTPUTS_MAX = 20
RESULTS_MAX = 1_000
"""A run without an output shows the results of so many last tasks."""


def time_view(moment: Moment | None) -> Time | None:
    """A moment as people and programs read it."""
    return None if moment is None else time_of(moment)


def run_view(run: Run, *, has_output: bool) -> RunView:
    """A run, as its row tells it; the task that makes its output is not counted."""
    return RunView(
        id=run.id,
        workflow=run.workflow,
        version_id=run.version_id,
        kind=run.kind,
        key=run.key,
        state=run.state,
        ended=run.state in RUN_ENDED,
        progress=_progress(run, has_output=has_output),
        labels=run.labels,
        generation=run.generation,
        stopping=run.stop is not None and run.state not in RUN_ENDED,
        quarantine=run.quarantine,
        reason=run.reason,
        created_at=time_of(run.created_at),
        due_at=time_view(run.due_at),
        started_at=time_view(run.started_at),
        ended_at=time_view(run.ended_at),
    )


def _progress(run: Run, *, has_output: bool) -> ProgressView:
    # Until all tasks are written `open` counts them, and afterwards the positions do.
    written = max(run.open, run.next_position)
    total = written - has_output
    # The output mostly ends last. Where it does not, this is one ahead until the run ends.
    return ProgressView(total=total, ended=min(written - run.open, total), failed=run.failed)


def error_view(error: TaskError | None) -> ErrorView | None:
    """What went wrong in an attempt."""
    if error is None:
        return None
    return ErrorView(type=error.type, message=error.message, traceback=error.traceback)


def error_line(task: TaskRun, node: Node) -> str:
    """Why a run failed, in a line: the first task that did."""
    what = f"{task.error.type}: {task.error.message}" if task.error else task.reason or "failed"
    return f"{node.id}: {what}"[:ERROR_CHARACTERS_MAX]


def task_view(task: TaskRun, plan: Plan, workers: Mapping[SessionId, str]) -> TaskView:
    """A task of a run, under its name in the definition."""
    node = plan.nodes[task.node]
    return TaskView(
        run_id=task.run_id,
        position=task.position,
        id=node.id,
        title=node.spec.title,
        state=task.state,
        executor=node.spec.executor,
        queue=node.spec.queue,
        depends_on=tuple(plan.nodes[parent].id for parent in node.parents),
        max_retries=node.spec.retry.max_retries,
        attempt=task.attempt,
        failures=task.failures,
        losses=task.losses,
        epoch=task.epoch,
        worker=_worker_of(task.session_id, workers),
        hold=task.hold,
        reason=task.reason,
        error=error_view(task.error),
        ready_at=time_view(task.ready_at),
        started_at=time_view(task.started_at),
        ended_at=time_view(task.ended_at),
        due_at=time_view(task.due_at),
    )


def attempt_views(
    earlier: Sequence[Attempt],
    task: TaskRun,
    logs: Mapping[int, str],
    workers: Mapping[SessionId, str],
) -> tuple[AttemptView, ...]:
    """Every attempt that has begun, the latest last; the last ones with what they printed."""
    shown = {epoch: logs[epoch] for epoch in sorted(logs)[-OUTPUTS_MAX:]}
    views = [
        AttemptView(
            attempt=one.attempt,
            epoch=one.epoch,
            reason=one.reason,
            worker=_worker_of(one.session_id, workers),
            error=error_view(one.error),
            started_at=time_view(one.started_at),
            ended_at=time_view(one.ended_at),
            output=shown.get(one.epoch, ""),
        )
        for one in earlier
    ]
    told = {one.epoch for one in earlier}
    if task.epoch > 0 and task.epoch not in told and task.started_at is not None:
        views.append(_latest_attempt(task, shown, workers))
    return tuple(views)


def _latest_attempt(
    task: TaskRun, logs: Mapping[int, str], workers: Mapping[SessionId, str]
) -> AttemptView:
    return AttemptView(
        attempt=task.attempt,
        epoch=task.epoch,
        reason=task.reason,
        worker=_worker_of(task.session_id, workers),
        error=error_view(task.error),
        started_at=time_view(task.started_at),
        ended_at=time_view(task.ended_at) if task.state in ENDED else None,
        output=logs.get(task.epoch, ""),
    )


def job_view(job: Job, plan: Plan, workers: Mapping[SessionId, str]) -> JobView:
    """A job, without payload and result."""
    node = plan.nodes[job.task.node]
    return JobView(
        id=job.run.id,
        type=node.spec.executor,
        state=job.task.state,
        key=job.run.key,
        labels=job.run.labels,
        attempt=job.task.attempt,
        max_retries=node.spec.retry.max_retries,
        worker=_worker_of(job.task.session_id, workers),
        error=error_view(job.task.error),
        created_at=time_of(job.run.created_at),
        started_at=time_view(job.task.started_at),
        ended_at=time_view(job.task.ended_at),
    )


def dead_letter_view(task: TaskRun, plan: Plan) -> DeadLetterView:
    """A task that failed for good."""
    node = plan.nodes[task.node]
    return DeadLetterView(
        run_id=task.run_id,
        task=node.id,
        title=node.spec.title,
        position=task.position,
        workflow=plan.workflow.name,
        executor=node.spec.executor,
        attempt=task.attempt,
        failures=task.failures,
        losses=task.losses,
        reason=task.reason,
        error=error_view(task.error),
        ended_at=time_view(task.ended_at),
    )


def group_view(group: DeadGroup, plan: Plan) -> GroupView:
    """Dead letters that failed alike."""
    return GroupView(
        group=group.fingerprint,
        workflow=group.workflow,
        type=group.type,
        message=group.message[:ERROR_CHARACTERS_MAX],
        count=group.count,
        run_id=group.newest.run_id,
        task=plan.nodes[group.newest.position].id,
        earliest_at=time_of(group.earliest_at),
        latest_at=time_of(group.latest_at),
    )


def workflow_view(row: WorkflowRow, definition: Workflow | None = None) -> WorkflowView:
    """A workflow that is deployed."""
    return WorkflowView(
        id=row.id,
        name=row.name,
        title=row.title,
        version=row.number,
        version_id=row.version_id or "",
        labels=row.labels,
        changed_at=time_of(row.changed_at),
        description=definition.description if definition else "",
        tasks=len(definition.tasks) if definition else 0,
        definition=definition,
    )


def version_view(release: Release, definition: Workflow | None = None) -> VersionView:
    """One version of a workflow."""
    return VersionView(
        name=release.name,
        number=release.number,
        version_id=release.version_id,
        created_at=time_of(release.created_at),
        created_by=release.created_by or None,
        definition=definition,
    )


def worker_view(row: WorkerRow) -> WorkerView:
    """A worker that is connected."""
    session = row.session
    return WorkerView(
        id=session.id,
        worker=session.worker,
        scheduler=session.scheduler,
        slots=session.slots,
        queues=session.queues,
        labels=session.labels,
        opened_at=time_of(session.opened_at),
        running=row.busy,
        offers=session.offers,
    )


def queue_views(rows: Iterable[QueueRow], workers: Sequence[WorkerRow]) -> tuple[QueueView, ...]:
    """Queues by name: those in which something waits or runs, and those that somebody serves."""
    found: dict[str, list[QueueRow]] = {}
    for row in rows:
        found.setdefault(read_route(row.route)[0], []).append(row)
    for worker in workers:
        for name in worker.session.queues:
            found.setdefault(name, [])
    return tuple(_queue_view(name, found[name], workers) for name in sorted(found))


def _queue_view(name: str, rows: Sequence[QueueRow], workers: Sequence[WorkerRow]) -> QueueView:
    serving = [worker.session for worker in workers if name in worker.session.queues]
    waiting = [row.oldest_ready_at for row in rows if row.oldest_ready_at is not None]
    return QueueView(
        name=name,
        ready=sum(row.ready for row in rows),
        held=sum(row.held for row in rows),
        running=sum(row.running for row in rows),
        workers=len(serving),
        slots=sum(session.slots for session in serving),
        oldest_ready_at=time_view(min(waiting, default=None)),
    )


def result_view(plan: Plan, results: Mapping[int, bytes], *, bare: bool) -> object:
    """The result of a run that succeeded; `bare` when its only task is the whole of it.

    `results` are those of the nodes that `result_nodes` names; one that is missing is null.
    """
    nodes = result_nodes(plan)
    if bare or plan.output is not None:
        return msgspec.Raw(results.get(nodes[0].index, b"null"))
    return {node.id: msgspec.Raw(results.get(node.index, b"null")) for node in nodes}


def result_nodes(plan: Plan) -> list[Node]:
    """The nodes whose results are the result of a run: the output, or the last tasks."""
    if plan.output is not None:
        return [plan.output]
    return [node for node in plan.nodes if not node.children][:RESULTS_MAX]


def is_shown(task: TaskRun, plan: Plan) -> bool:
    """Whether people see this task: the output's evaluation only when it went wrong."""
    return plan.nodes[task.node].id != OUTPUT_ID or task.state is TaskState.FAILED


def _worker_of(session_id: SessionId | None, workers: Mapping[SessionId, str]) -> str | None:
    return None if session_id is None else workers.get(session_id, session_id)


__all__ = [
    "attempt_views",
    "dead_letter_view",
    "error_line",
    "error_view",
    "group_view",
    "is_shown",
    "job_view",
    "queue_views",
    "result_nodes",
    "result_view",
    "run_view",
    "task_view",
    "time_view",
    "version_view",
    "worker_view",
    "workflow_view",
]
