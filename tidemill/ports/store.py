"""The store, as the engine sees it. tests/contract holds every implementation to this text.

Everything is a batch: one item is a list of length one, an empty list does nothing. All writes go
through a transaction. Rows whose `format` is unknown to this release are never returned by verbs
that lock. Passing faults are raised as Unavailable, a commit of unknown result as CommitUnknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec

from tidemill.domain.identifiers import (
    Lane,
    Moment,
    RunId,
    SessionId,
    TaskKey,
    Token,
    VersionId,
)
from tidemill.domain.run import Run
from tidemill.domain.task_run import Attempt, TaskRun, TaskState
from tidemill.ports.queries import DeadQuery, RunQuery

FORMAT_MAX = 1
"""Rows of a higher format belong to a later release and are left to it."""


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run about to be stored, with its input as JSON."""

    run: Run
    input: bytes


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable definition, known by the hash of its content."""

    id: VersionId
    namespace: str
    name: str
    spec: bytes
    created_at: Moment


class StartKey(msgspec.Struct, frozen=True, kw_only=True):
    """The promise that one idempotency key starts one run."""

    namespace: str
    kind: str
    key: str
    body_hash: str
    run_id: RunId
    expires_at: Moment


class Session(msgspec.Struct, frozen=True, kw_only=True):
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


class Claim(NamedTuple):
    """READY tasks locked for this transaction, and where the next look at the lane may begin."""

    tasks: list[TaskRun]
    floor: int


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


class RunTable(Protocol):
    """Runs. The row of a run is the mutex for everything in the run except leasing."""

    async def add(self, runs: Sequence[NewRun]) -> None:
        """Insert new runs."""

    async def lock(self, run_ids: Sequence[RunId], *, wait: bool) -> list[Run]:
        """Lock and return runs in order of id, without those in quarantine.

        With `wait`, block until every lock is had (Unavailable after the lock timeout); without,
        leave out the runs that another transaction holds.
        """

    async def peek(self, run_ids: Sequence[RunId]) -> list[Run]:
        """Return runs without locking them, in order of id, without those in quarantine."""

    async def save(self, runs: Sequence[Run]) -> None:
        """Write back changed runs that this transaction has locked."""

    async def quarantine(self, run_id: RunId, reason: str) -> None:
        """Put one run out of every scheduler's reach, its READY tasks on hold, unread."""

    async def release(self, run_id: RunId) -> bool:
        """End the quarantine of a run; False when it was not in quarantine."""


class TaskTable(Protocol):
    """Tasks of runs."""

    async def add(self, tasks: Sequence[TaskRun]) -> None:
        """Insert new tasks. One that is there already is left as it is."""

    async def lock(self, keys: Sequence[TaskKey]) -> list[TaskRun]:
        """Lock and return tasks of runs that this transaction has locked, in order of key."""

    async def lock_states(
        self, run_id: RunId, states: Sequence[TaskState], limit: int
    ) -> list[TaskRun]:
        """Lock and return tasks of one run in any of the states, lowest position first."""

    async def lock_untold(self, run_id: RunId, limit: int) -> list[TaskRun]:
        """Lock and return ended tasks of one run that have children left to tell."""

    async def claim(self, lane: Lane, *, floor: int, limit: int, alone: bool) -> Claim:
        """Lock up to `limit` READY tasks of a lane in order of arrival, skipping locked ones.

        Only tasks without a hold; with `alone`, only tasks whose hold is ALONE. Tasks that arrived
        before `floor` are not looked at.
        """

    async def save(self, tasks: Sequence[TaskRun]) -> None:
        """Write back changed tasks. A task that becomes READY goes to the end of its lane."""


class SessionTable(Protocol):
    """Sessions of workers. Times are the database's."""

    async def open(self, session: Session) -> None:
        """Insert a session; one that is there already is left as it is."""

    async def get(self, session_id: SessionId) -> Session | None:
        """Lock one session against everyone, and return it, closed or not."""

    async def lock(self, session_ids: Sequence[SessionId]) -> set[SessionId]:
        """Keep these sessions from being closed; return those open and unexpired right now.

        Does not stand in the way of `Store.renew_sessions`.
        """

    async def count_granted(
        self, pools: Sequence[SessionId], members: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        """Hold pools alone until the end, and count what they and their members were granted.

        A pool that is closed or missing is left out.
        """

    async def held(self, session_id: SessionId) -> list[HeldTask]:
        """What a session has been granted; complete when this transaction locked it by `get`."""

    async def close(self, session_ids: Sequence[SessionId]) -> None:
        """End sessions; a closed one stays closed."""

    async def replace(self, old: SessionId, new: SessionId) -> None:
        """Close a session that this transaction has locked by `get`, in favour of another."""

    async def close_all(self) -> None:
        """End every session but pools: the first act of a new exclusive owner."""

    async def prune(self, before: Moment) -> int:
        """Forget sessions closed or expired before, unless a task points at them."""


class StartTable(Protocol):
    """What a start needs besides the run itself."""

    async def add_versions(self, versions: Sequence[Version]) -> None:
        """Store definitions; one that is there already is left as it is."""

    async def take_keys(self, keys: Sequence[StartKey]) -> list[StartKey]:
        """Try to take keys; return, for every key asked for, the one that holds.

        A key that expired, and whose run has ended, is free again.
        """


class HistoryTable(Protocol):
    """What is kept about attempts: written once, never locked."""

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Record attempts that were followed by another one."""

    async def add_results(self, results: Sequence[TaskResult]) -> None:
        """Record results of tasks that succeeded in this transaction."""

    async def add_logs(self, chunks: Sequence[LogChunk], bytes_max: int) -> None:
        """Append output of attempts, keeping the last `bytes_max` bytes of each."""


class OutboxTable(Protocol):
    """Facts, committed together with the change that they tell."""

    async def append(self, facts: bytes) -> None:
        """Add one row: the facts of this transaction."""

    async def lead(self, name: str, holder: str, until: Moment) -> bool:
        """Lock the leader row; True when `holder` leads now, until the moment given at most."""

    async def stamp(self, limit: int) -> int:
        """Give visible rows without a position the next positions; return how many."""

    async def read(self, after: int, limit: int) -> list[OutboxRow]:
        """Rows with a position above `after`, in order of position."""

    async def cursor(self, name: str) -> int:
        """How far the reader `name` has come; 0 for one not seen before."""

    async def move_cursor(self, name: str, position: int) -> None:
        """Remember how far the reader `name` has come."""

    async def prune(self, before: Moment, limit: int) -> int:
        """Delete rows older than the moment that every cursor has passed; return how many."""


class Transaction(Protocol):
    """One atomic unit of work."""

    @property
    def runs(self) -> RunTable: ...
    @property
    def tasks(self) -> TaskTable: ...
    @property
    def sessions(self) -> SessionTable: ...
    @property
    def starts(self) -> StartTable: ...
    @property
    def history(self) -> HistoryTable: ...
    @property
    def outbox(self) -> OutboxTable: ...

    async def now(self) -> Moment:
        """The clock of the database, at this instant."""


class Watch(Protocol):
    """What timers look for. No locks are taken: the answers are hints for a turn to check."""

    async def due_tasks(self, limit: int) -> list[DueTask]:
        """Tasks whose `due_at` has come, the longest overdue first."""

    async def due_runs(self, limit: int) -> list[RunId]:
        """Open runs whose `due_at` has come and that are not stopping yet."""

    async def lost_tasks(self, limit: int, *, expired: bool) -> list[LostTask]:
        """Granted tasks whose session is missing or closed, or (with `expired`) has expired."""

    async def unsettled_runs(self, limit: int) -> list[RunId]:
        """Runs with work for a turn: tasks to write, roots or children to tell, tasks to stop."""

    async def foreign_runs(self, limit: int) -> int:
        """How many runs there are, up to the limit, whose format only a later release knows."""

    async def ready_lanes(self) -> list[ReadyLane]:
        """Lanes with at least one READY task that is not held, or held ALONE."""

    async def held_by(self, session_ids: Sequence[SessionId]) -> Mapping[SessionId, list[HeldTask]]:
        """What sessions have been granted; each of those asked for is in the answer."""


class Payloads(Protocol):
    """What an assignment is made of. Immutable once written, so read without locks."""

    async def versions(self, version_ids: Sequence[VersionId]) -> list[Version]:
        """Definitions."""

    async def inputs(self, run_ids: Sequence[RunId]) -> Mapping[RunId, bytes]:
        """Inputs of runs, as JSON."""

    async def results(self, keys: Sequence[TaskKey]) -> Mapping[TaskKey, bytes]:
        """Results of tasks, as JSON; a task without a stored result is left out."""


class Reader(Protocol):
    """What people look at."""

    async def run(self, run_id: RunId) -> Run:
        """One run, or NotFound."""

    async def find_runs(self, prefix: str, limit: int) -> list[RunId]:
        """Ids of runs that begin or end with the text, newest first."""

    async def runs(self, query: RunQuery) -> list[Run]:
        """A page of runs."""

    async def tasks(self, run_id: RunId, after: int, limit: int) -> list[TaskRun]:
        """Tasks of a run with a position above `after`, in order of position."""

    async def attempts(self, key: TaskKey) -> list[Attempt]:
        """The attempts of a task before the latest, oldest first."""

    async def logs(self, key: TaskKey) -> Mapping[int, str]:
        """The kept output of a task's attempts, by epoch; a first line counts what was dropped."""

    async def dead_letters(self, query: DeadQuery) -> list[TaskRun]:
        """A page of FAILED tasks."""

    async def sessions(self) -> list[Session]:
        """Sessions that are open and unexpired, without pools."""


class Store(Protocol):
    """Durable state."""

    @property
    def watch(self) -> Watch: ...
    @property
    def payloads(self) -> Payloads: ...
    @property
    def reader(self) -> Reader: ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Commit when the block ends, roll back when it raises."""

    async def renew_sessions(
        self, session_ids: Sequence[SessionId], ttl_micros: int
    ) -> set[SessionId]:
        """Renew in a transaction and on a connection of its own, so that no turn delays it."""

    async def migrate(self, tell: Callable[[str], None] | None = None) -> None:
        """Bring the schema up to date, and tell each step; one migrator at a time.

        Others may go on with the schema as it was. Unavailable when they do not let go of it.
        """

    async def migrations_left(self) -> list[str]:
        """Names of the migrations that this release needs and the schema lacks."""

    def alarm(self) -> str:
        """What people must know about the data, in a line; empty when all is well."""

    async def close(self) -> None:
        """Let go of connections and threads; safe to call twice."""
