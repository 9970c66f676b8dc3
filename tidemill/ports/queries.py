"""What people ask a store for, page by page, and what they get."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from tidemill.domain.identifiers import Moment, RunId, TaskKey
from tidemill.domain.run import Run, RunKind, RunState
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.ports.rows import Session

TEXT_ROWS_MAX = 10_000
"""How many rows behind the cursor a search for text or a fingerprint looks at."""

COUNT_MAX = 10_000
"""Where counting stops: the number then means so many or more."""


class RunOrder(StrEnum):
    """In which order runs are listed."""

    NEWEST = "-created"
    OLDEST = "created"


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list; all conditions hold together, what is left out does not count.

    A page begins behind the run `after`. `text` is a part of the workflow's name, the id or the
    key, in any case; it is looked for in TEXT_ROWS_MAX runs behind `after` that meet the rest.
    """

    namespace: str
    states: tuple[RunState, ...] = ()
    workflow: str | None = None
    kinds: tuple[RunKind, ...] = ()
    label: tuple[str, str] | None = None  # name and value
    created_after: Moment | None = None  # this moment or later
    created_before: Moment | None = None  # before this moment
    text: str = ""
    order: RunOrder = RunOrder.NEWEST
    after: RunId | None = None
    limit: int = 50


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list, newest first, those older than `after`; any of the states of their task.

    `type` is the name of the job's workflow, which is its type.
    """

    namespace: str
    states: tuple[TaskState, ...] = ()
    type: str | None = None
    after: RunId | None = None
    limit: int = 50


class Job(NamedTuple):
    """A run of one task, together with the task."""

    run: Run
    task: TaskRun


class DeadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters to list: newest run first, in order of position within a run.

    With `workflow` or `fingerprint` (domain/fingerprints.py), those among the TEXT_ROWS_MAX dead
    letters behind `after`.
    """

    namespace: str
    run_id: RunId | None = None
    workflow: str | None = None
    fingerprint: str | None = None
    after: TaskKey | None = None
    limit: int = 50


class DeadGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters that failed alike."""

    fingerprint: str
    workflow: str
    type: str  # of the error
    message: str  # of the newest one
    count: int
    newest: TaskKey
    latest_at: Moment
    earliest_at: Moment


class WorkerRow(NamedTuple):
    """A worker that is connected, and how many of its slots are taken."""

    session: Session
    busy: int


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """What waits and runs on one route; counts stop at COUNT_MAX."""

    route: str
    ready: int = 0
    held: int = 0  # READY, but not to be granted now
    running: int = 0
    oldest_ready_at: Moment | None = None  # since when the first one waits


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace at a glance; counts stop at COUNT_MAX."""

    open_runs: int
    ready: int
    held: int
    running: int
    backoff: int
    dead_letters: int
    workers: int
    slots: int


class WorkflowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which workflows to list, by name, those behind the name `after`.

    `text` is a part of name or title, in any case. Drafts that were never started have no release,
    and are listed only when asked for.
    """

    namespace: str
    text: str = ""
    label: tuple[str, str] | None = None
    drafts: bool = False
    after: str = ""
    limit: int = 50
