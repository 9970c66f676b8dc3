"""How states are called in the shapes of other systems."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.task_run import TaskRun, TaskState


class JobStatus(StrEnum):
    """The status of a job or a step."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRYING = "retrying"
    DEAD_LETTER = "dead_letter"


class ChainStatus(StrEnum):
    """The status of a chain of steps."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


STATUS_OF = {
    TaskState.PENDING: JobStatus.PENDING,
    TaskState.READY: JobStatus.QUEUED,
    TaskState.RUNNING: JobStatus.RUNNING,
    TaskState.CANCELLING: JobStatus.RUNNING,
    TaskState.BACKOFF: JobStatus.RETRYING,
    TaskState.SUCCEEDED: JobStatus.COMPLETED,
    TaskState.FAILED: JobStatus.DEAD_LETTER,
    TaskState.SKIPPED: JobStatus.FAILED,
    TaskState.UPSTREAM_FAILED: JobStatus.FAILED,
    TaskState.CANCELLED: JobStatus.FAILED,
}
STATES_OF = {
    status: tuple(state for state in TaskState if STATUS_OF[state] is status)
    for status in JobStatus
}


def chain_status(run: Run, tasks: Iterable[TaskRun]) -> ChainStatus:
    """A chain is pending until its first attempt begins."""
    if run.state is RunState.SUCCEEDED:
        return ChainStatus.COMPLETED
    if run.state in RUN_ENDED:
        return ChainStatus.FAILED
    begun = any(task.epoch > 0 for task in tasks)
    return ChainStatus.RUNNING if begun else ChainStatus.PENDING


def attempts_begun(task: TaskRun) -> int:
    """How many attempts have begun; 0 for a job that nobody has tried yet."""
    if task.epoch == 0:
        return 0
    return task.attempt - 1 if task.state is TaskState.READY else task.attempt


def last_error(task: TaskRun) -> str | None:
    """What went wrong last, in a line."""
    return None if task.error is None else f"{task.error.type}: {task.error.message}"
