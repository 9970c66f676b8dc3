"""Runs on the wire: how they are started, found, steered and shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.domain.patterns import LABEL_FILTER_PATTERN
from tidemill.domain.run import RunKind, RunState
from tidemill.domain.workflow import Labels, Name, Workflow
from tidemill.ports.queries import RunOrder
from tidemill.protocol.resources.values import PAGE_DEFAULT, Cursor, Key, Limit, Time

WAIT_SECONDS_MAX = 60.0


LabelFilter: TypeAlias = Annotated[
    str, Meta(pattern=LABEL_FILTER_PATTERN, description="`name=value`")
]


class StartRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start what is deployed as `workflow`, or the `definition` sent along: exactly one of them."""

    workflow: Name | UnsetType = UNSET
    version: Annotated[int, Meta(ge=1, le=2**31 - 1)] | UnsetType = UNSET
    definition: Workflow | UnsetType = UNSET
    input: dict[str, Any] = {}
    key: Key | UnsetType = UNSET
    labels: Labels = {}


class RunsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to list."""

    state: tuple[RunState, ...] = ()
    workflow: Name | None = None
    kind: tuple[RunKind, ...] = ()
    label: LabelFilter | None = None
    created_after: Time | None = None
    created_before: Time | None = None
    text: Annotated[
        str, Meta(max_length=128, description="A part of the id, the key or the workflow's name.")
    ] = ""
    sort: RunOrder = RunOrder.NEWEST
    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class RunQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to show of one run besides its state."""

    include: tuple[Literal["input", "result", "waits"], ...] = ()


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for the end of a run, in seconds."""

    timeout: Annotated[float, Meta(ge=0, le=WAIT_SECONDS_MAX)] = 30.0


class ProgressView(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks a run has, how many have ended, and how many of those have failed.

    `$output`, the task that makes the workflow's output, is not counted; only its failure is.
    """

    total: int
    ended: int
    failed: int


class WaitReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task of a run does not run yet."""

    task: str
    code: str
    message: str


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `input`, `result` and `waits` are there where they were asked for."""

    id: str
    workflow: str
    version_id: str
    kind: RunKind
    state: RunState
    ended: bool
    progress: ProgressView
    created_at: Time
    version: int | None = None  # the number of a deployed version
    key: str | None = None
    title: str = ""
    labels: Labels = {}
    generation: int = 1
    stopping: bool = False
    quarantine: str | None = None
    reason: str | None = None
    error: str | None = None
    due_at: Time | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    input: Any | UnsetType = UNSET
    result: Any | UnsetType = UNSET
    waits: tuple[WaitReason, ...] | UnsetType = UNSET


class StartedView(msgspec.Struct, frozen=True, kw_only=True):
    """The run of a start; not created when its key had started it before."""

    id: str
    created: bool


class ResultView(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has led to.

    `result` is the workflow's output; of a workflow without one, the results of its last tasks by
    id, and of a job the result of its task. It is null until the run has succeeded.
    """

    id: str
    state: RunState
    ended: bool
    result: Any = None
    error: str | None = None


class RetriedView(msgspec.Struct, frozen=True, kw_only=True):
    """A run that goes on, and how many of its failed tasks are tried again."""

    run: RunView
    tasks: int


__all__ = [
    "WAIT_SECONDS_MAX",
    "LabelFilter",
    "ProgressView",
    "ResultView",
    "RetriedView",
    "RunKind",
    "RunQuery",
    "RunView",
    "RunsQuery",
    "StartRun",
    "StartedView",
    "WaitQuery",
    "WaitReason",
]
