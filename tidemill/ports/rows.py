"""Rows of the store as values, and small answers of its verbs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidemill.domain.identifiers import Lane, Moment, RunId, SessionId, TaskKey, Token, VersionId
from tidemill.domain.run import Run
from tidemill.domain.task_run import Attempt, TaskRun, TaskState


class NewRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run about to be stored, with its input as JSON."""

    run: Run
    input: bytes


class Template(NamedTuple):
    """What many runs have in common when they begin: all but their ids, keys and inputs."""

    run: Run
    tasks: Sequence[TaskRun]


class Beginning(NamedTuple):
    """A run about to be stored with its tasks, its input as JSON."""

    run_id: RunId
    template: int  # which of those that come along
    key: str | None
    input: bytes


class Version(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An immutable definition, known by the hash of its content."""

    id: VersionId
    namespace: str
    name: str
    spec: bytes
    created_at: Moment


class StartKey(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The promise that one idempotency key starts one run."""

    namespace: str
    kind: str
    key: str
    body_hash: str
    run_id: RunId
    expires_at: Moment


class Session(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A worker process's connection to a scheduler."""

    id: SessionId
    namespace: str
    worker: str
    scheduler: str
    secret_hash: str
    slots: int
    queues: tuple[str, ...]
    labels: dict[str, str]
    opened_at: Moment
    expires_at: Moment
    closed_at: Moment | None = None
    successor: SessionId | None = None  # the session that took over what this one held
    offers: tuple[str, ...] = ()  # executors, and functions such as `python:flow:extract`


class Claim(NamedTuple):
    """READY tasks locked for this transaction, and where the next look at the lane may begin."""

    tasks: list[TaskRun]
    floor: int
    runs: list[Run]  # those of the tasks, each once, not locked; none in quarantine
    inputs: Mapping[RunId, bytes]  # of those runs, as JSON, where they are small


class ReadyLane(NamedTuple):
    """A lane in which somebody waits; `alone` for those that need a worker of their own."""

    lane: Lane
    alone: bool


class DueTask(NamedTuple):
    """A task whose timer has run out, as it was when looked at."""

    token: Token
    state: TaskState


class HeldTask(NamedTuple):
    """A task granted to a session; `cancelling` when it is asked to stop."""

    token: Token
    started_at: Moment
    cancelling: bool


class LostTask(NamedTuple):
    """A granted task and the session that seems to be gone."""

    token: Token
    session_id: SessionId


class TaskResult(NamedTuple):
    """The result of a task that succeeded, as JSON. A result of null is not stored."""

    key: TaskKey
    data: bytes


class Opening(NamedTuple):
    """What a turn begins with: whom it may grant to, and what it has news of."""

    sessions: Collection[SessionId]
    runs: Collection[RunId]  # these and the others in any order: locks are had in order of key
    tasks: Collection[TaskKey]  # of those runs
    wait: bool = False  # for runs that another transaction holds


class Opened(NamedTuple):
    """What was had of it, locked, in order of key."""

    now: Moment
    alive: set[SessionId]  # open and unexpired right now
    runs: list[Run]  # without those in quarantine and, unless waited for, those of others
    tasks: list[TaskRun]  # of the runs that were had


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """All that a transaction leaves behind in the tables of runs."""

    new_tasks: Sequence[TaskRun] = ()
    tasks: Sequence[TaskRun] = ()  # changed
    runs: Sequence[Run] = ()  # changed
    results: Sequence[TaskResult] = ()
    attempts: Sequence[Attempt] = ()
    facts: Sequence[bytes] = ()  # rows of the outbox


class LogChunk(NamedTuple):
    """Some output of one attempt, in the order in which it was written."""

    token: Token
    text: str
    dropped: int = 0  # bytes that are missing before it


class OutboxRow(NamedTuple):
    """The facts of one transaction; `position` is dense and follows the order of stamping."""

    number: int
    position: int
    facts: bytes


class WorkflowRow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow under its name: what was deployed last, or a draft that waits to be started."""

    id: str  # UUIDv7
    namespace: str
    name: str
    title: str = ""
    labels: dict[str, str] = {}  # those of the latest release
    number: int = 0  # of the latest release; 0 when there is none yet
    version_id: VersionId | None = None  # of the latest release
    draft: bytes | None = None  # JSON, see engine/drafts.py
    run_id: RunId | None = None  # the latest run that was started from the draft
    created_at: Moment
    changed_at: Moment
    deleted_at: Moment | None = None


class Release(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A definition under a workflow's name; numbers count from 1 and are never used again."""

    namespace: str
    name: str
    number: int
    version_id: VersionId
    created_at: Moment
    created_by: str
