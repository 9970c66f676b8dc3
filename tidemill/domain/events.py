"""What can happen to a task. `advance` in transitions.py says what follows."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidemill.domain.identifiers import SessionId
from tidemill.domain.task_run import TaskError, TaskState


class Granted(msgspec.Struct, frozen=True, gc=False):
    """A session with a free slot gets the task, or a pool, one of whose workers will take it up."""

    session_id: SessionId
    start_seconds: float | None = None  # of a pool: how long it may wait to be bound


class Bound(msgspec.Struct, frozen=True, gc=False):
    """A worker of the pool that was granted the task takes it up; the first one gets it."""

    epoch: int
    pool: SessionId
    session_id: SessionId


class Succeeded(msgspec.Struct, frozen=True, gc=False):
    """The worker reports a result, as JSON; None stands for null."""

    epoch: int
    result: bytes | None = None


class Failed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The worker reports an error, or a timeout of user code."""

    epoch: int
    error: TaskError
    final: bool = False  # no retry can mend it
    timeout: bool = False
    retry_after_seconds: float | None = None  # the other side asked for this much patience


class CancelConfirmed(msgspec.Struct, frozen=True, gc=False):
    """The worker has stopped the task that it was asked to stop."""

    epoch: int


class Released(msgspec.Struct, frozen=True, gc=False):
    """The worker hands the task back, or never got it: nothing was spent."""

    epoch: int


class Adopted(msgspec.Struct, frozen=True, gc=False):
    """The process that runs the task has a new session."""

    epoch: int
    session_id: SessionId


class Lost(msgspec.Struct, frozen=True, gc=False):
    """The session that held the task is gone."""

    epoch: int
    session_id: SessionId


class Due(msgspec.Struct, frozen=True, gc=False):
    """The timer of the task, as it was in this state and epoch, has run out."""

    epoch: int
    state: TaskState


class ParentsEnded(msgspec.Struct, frozen=True, gc=False):
    """Some parents have ended, one ending each; the task counts them."""

    endings: tuple[TaskState, ...]


class Held(msgspec.Struct, frozen=True, gc=False):
    """The run is paused: what waits for a slot waits aside."""


class Admitted(msgspec.Struct, frozen=True, gc=False):
    """The run is resumed: what waits aside may have a slot again."""


class StopRequested(msgspec.Struct, frozen=True, gc=False):
    """The run is being stopped."""


class Replayed(msgspec.Struct, frozen=True, gc=False):
    """Somebody wants a dead letter to be tried again, with fresh budgets."""


class Reopened(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A replay above makes the task wait for its parents again, counters taken anew."""

    waiting: int
    failed: int
    skipped: int


WorkerReport: TypeAlias = Succeeded | Failed | CancelConfirmed | Released
"""What a worker can say about a grant."""

Event: TypeAlias = (
    Granted
    | Bound
    | WorkerReport
    | Adopted
    | Lost
    | Due
    | ParentsEnded
    | Held
    | Admitted
    | StopRequested
    | Replayed
    | Reopened
)

__all__ = [
    "Admitted",
    "Adopted",
    "Bound",
    "CancelConfirmed",
    "Due",
    "Event",
    "Failed",
    "Granted",
    "Held",
    "Lost",
    "ParentsEnded",
    "Released",
    "Reopened",
    "Replayed",
    "StopRequested",
    "Succeeded",
    "WorkerReport",
]
