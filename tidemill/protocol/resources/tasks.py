"""Tasks of runs and their attempts on the wire."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tidemill.domain.task_run import TaskState
from tidemill.protocol.resources.runs import WaitReason
from tidemill.protocol.resources.values import PAGE_DEFAULT, Cursor, ErrorView, Limit, Time


class TasksQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of the tasks of a run, in the order of its definition."""

    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class TaskProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a running task says it has come: a fraction of 1, and a word about it."""

    fraction: float
    message: str = ""


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a run; `attempt` is the latest one, or the next before it begins."""

    run_id: str
    position: int
    id: str
    state: TaskState
    executor: str
    queue: str
    attempt: int
    failures: int
    losses: int
    epoch: int
    title: str = ""
    depends_on: tuple[str, ...] = ()
    max_retries: int = 0
    worker: str | None = None
    hold: str | None = None
    reason: str | None = None
    error: ErrorView | None = None
    waiting_for: tuple[WaitReason, ...] = ()
    ready_at: Time | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    due_at: Time | None = None
    progress: TaskProgress | None = None


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One try at a task; the latest one comes last. Its end is null while it runs."""

    attempt: int
    epoch: int
    reason: str | None = None
    worker: str | None = None
    error: ErrorView | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    output: str = ""


class TaskDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its attempts, what it printed, and its result once there is one.

    `input` is what the attempt was given, or would be given now.
    """

    task: TaskView
    attempts: tuple[AttemptView, ...] = ()
    params: dict[str, Any] = {}
    input: Any | UnsetType = UNSET
    result: Any | UnsetType = UNSET


__all__ = ["AttemptView", "TaskDetails", "TaskProgress", "TaskView", "TasksQuery"]
