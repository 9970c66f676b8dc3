"""One task in a run: its value and its states."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidemill.domain.identifiers import Moment, RunId, SessionId, TaskKey, Token, new_tuple


class TaskState(StrEnum):
    """Where a task stands; docs/state_machine.md draws the moves between them."""

    PENDING = "PENDING"  # waits for its parents
    READY = "READY"  # waits for a free slot
    RUNNING = "RUNNING"  # granted to a session
    BACKOFF = "BACKOFF"  # failed, and waits for its next attempt
    CANCELLING = "CANCELLING"  # granted, and its worker was asked to stop
    SUCCEEDED = "SUCCEEDED"  # ended with a result
    FAILED = "FAILED"  # ended for good with an error: a dead letter
    SKIPPED = "SKIPPED"  # ended without running: its trigger rule did not hold
    UPSTREAM_FAILED = "UPSTREAM_FAILED"  # ended without running: something it needs failed
    CANCELLED = "CANCELLED"  # ended because the run was stopped


ENDED = frozenset(
    {
        TaskState.SUCCEEDED,
        TaskState.FAILED,
        TaskState.SKIPPED,
        TaskState.UPSTREAM_FAILED,
        TaskState.CANCELLED,
    }
)
GRANTED = frozenset({TaskState.RUNNING, TaskState.CANCELLING})
_ATTEMPT_OVER = frozenset({TaskState.FAILED, TaskState.BACKOFF})


ALONE = "alone"
"""The `hold` of a READY task that may only run in a worker that runs nothing else."""

PAUSED = "paused"
"""The `hold` of a READY task whose run is paused."""


class TaskKind(StrEnum):
    """What a row of the task table stands for. Maps, items and compensations come later."""

    TASK = "task"  # a task of the definition
    OUTPUT = "output"  # evaluates the workflow's output


class Reason(StrEnum):
    """Why a task or a run ended, or an attempt was over."""

    EXHAUSTED = "exhausted"  # failed, and the retry policy has given up
    FINAL_ERROR = "final_error"  # failed with an error that no retry can mend
    FAILED = "failed"  # an attempt failed, another one follows
    TIMEOUT = "timeout"  # an attempt, the wait in the queue or the run took too long
    LOST = "lost"  # the worker's session ended under it
    RELEASED = "released"  # handed back unspent
    CANCELLED = "cancelled"  # somebody asked for it
    TASK_FAILED = "task_failed"  # of a run: at least one task failed


class TaskError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What went wrong in an attempt, as the user should see it."""

    type: str
    message: str
    traceback: str = ""


class TaskRun(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A row of the task table, without its result."""

    run_id: RunId
    position: int
    namespace: str
    node: int  # place in the definition
    state: TaskState
    route: str
    kind: TaskKind = TaskKind.TASK
    epoch: int = 0  # raised by every grant: the fence
    failures: int = 0  # errors and timeouts of user code, against the retry policy
    losses: int = 0  # sessions lost under it, against a limit of their own
    waiting: int = 0  # parents that have not ended
    failed: int = 0  # parents that failed, or could not run for a failure
    skipped: int = 0  # parents that were skipped or cancelled
    told: int | None = None  # ended: children told so far, in order; None when none is left
    priority: int = 0
    hold: str | None = None  # READY but not admissible, and why
    due_at: Moment | None = None  # when a timer must look at it: see domain/transitions.py
    session_id: SessionId | None = None
    ready_at: Moment | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None
    ended_no: int | None = None  # order of ending within the run
    reason: Reason | None = None
    error: TaskError | None = None
    format: int = 1

    @property
    def key(self) -> TaskKey:
        """The primary key."""
        return new_tuple(TaskKey, (self.run_id, self.position))

    @property
    def token(self) -> Token:
        """The fencing token of the current grant."""
        return new_tuple(Token, (self.run_id, self.position, self.epoch))

    @property
    def attempt(self) -> int:
        """The number of the latest attempt, or of the next one before it begins; from 1."""
        spent = self.failures + self.losses
        return max(1, spent) if self.state in _ATTEMPT_OVER else spent + 1


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An attempt that another one followed; the latest one lives in the task itself."""

    run_id: RunId
    position: int
    epoch: int
    attempt: int
    reason: Reason
    session_id: SessionId | None
    started_at: Moment | None
    ended_at: Moment
    error: TaskError | None = None
