"""Jobs on the wire: runs of one task, asked for by type and payload."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import Labels, Name
from tidemill.protocol.resources.values import PAGE_DEFAULT, Cursor, ErrorView, Key, Limit, Time


class StartJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to run: its type, what it is given, and how often a failure is followed by a retry."""

    type: Name
    payload: Any = None
    max_retries: Annotated[int, Meta(ge=0, le=1_000)] = 3
    queue: Name = "default"
    priority: Annotated[int, Meta(ge=-100, le=100)] = 0
    key: Key | UnsetType = UNSET
    labels: Labels = {}


class JobsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to list, newest first; a job has the state of its task."""

    state: tuple[TaskState, ...] = ()
    type: Name | None = None
    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job. Its id is that of its run; `payload` and `result` are not in lists."""

    id: str
    type: str
    state: TaskState
    created_at: Time
    attempt: int
    max_retries: int
    key: str | None = None
    labels: Labels = {}
    worker: str | None = None
    error: ErrorView | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    payload: Any | UnsetType = UNSET
    result: Any | UnsetType = UNSET


__all__ = ["JobView", "JobsQuery", "StartJob"]
