"""The store, as the engine sees it. tests/contract holds every implementation to this text.

Everything is a batch: one item is a list of length one, an empty list does nothing. All writes go
through a transaction. Rows whose `format` is unknown to this release are never returned by verbs
that lock. Passing faults are raised as Unavailable, a commit of unknown result as CommitUnknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tidemill.domain.identifiers import Lane, Moment, RunId, SessionId, TaskKey
from tidemill.domain.run import Run
from tidemill.domain.task_run import Attempt, TaskRun, TaskState
from tidemill.ports.identity import IdentityReader, IdentityTables
from tidemill.ports.reading import Payloads, Reader, Watch
from tidemill.ports.rows import (
    Beginning,
    Changes,
    Claim,
    DueTask,
    HeldTask,
    LogChunk,
    LostTask,
    NewRun,
    Opened,
    Opening,
    OutboxRow,
    ReadyLane,
    Release,
    Session,
    StartKey,
    TaskResult,
    Template,
    Version,
    WorkflowRow,
)
from tidemill.ports.secrets import SecretTable

FORMAT_MAX = 2
"""Rows of a higher format belong to a later release and are left to it."""


class RunTable(Protocol):
    """Runs. The row of a run is the mutex for everything in the run except leasing."""

    async def add(self, runs: Sequence[NewRun]) -> None:
        """Insert new runs."""

    async def lock(self, run_ids: Collection[RunId], *, wait: bool) -> list[Run]:
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

    async def lock_ready(
        self, run_id: RunId, *, paused: bool, start: int, limit: int
    ) -> list[TaskRun]:
        """Lock and return READY tasks of one run from position `start` on, lowest position first.

        With `paused`, only tasks whose hold is PAUSED; without, only the others.
        """

    async def lock_untold(self, run_id: RunId, limit: int) -> list[TaskRun]:
        """Lock and return ended tasks of one run that have children left to tell."""

    async def claim(self, lane: Lane, *, floor: int, limit: int, alone: bool) -> Claim:
        """Lock up to `limit` READY tasks of a lane in order of arrival, skipping locked ones.

        Only tasks without a hold; with `alone`, only tasks whose hold is ALONE. Tasks that arrived
        before `floor` are not looked at.
        """

    async def save(self, tasks: Sequence[TaskRun]) -> None:
        """Write back changed tasks.

        A task that becomes READY, or READY under another hold, goes to the end of its lane.
        """

    async def discard(self, key: TaskKey) -> None:
        """Take a FAILED task out of the dead letters, until it fails again."""


class SessionTable(Protocol):
    """Sessions of workers. Times are the database's."""

    async def open(self, session: Session) -> None:
        """Insert a session; one that is there already is left as it is."""

    async def get(self, session_id: SessionId) -> Session | None:
        """Lock one session against everyone, and return it, closed or not."""

    async def lock(self, session_ids: Collection[SessionId]) -> set[SessionId]:
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

    async def prune_keys(self, limit: int) -> int:
        """Look at expired keys and forget those that are free again; return how many were seen."""


class DefinitionTable(Protocol):
    """Workflows by name, and their releases."""

    async def add(self, workflow: WorkflowRow) -> bool:
        """Insert a workflow; False, and nothing done, when its name is taken."""

    async def lock(self, namespace: str, name: str) -> WorkflowRow | None:
        """Lock and return one workflow, removed or not."""

    async def lock_id(self, namespace: str, workflow_id: str) -> WorkflowRow | None:
        """Lock and return one workflow by its id, removed or not."""

    async def save(self, workflow: WorkflowRow) -> None:
        """Write back a changed workflow that this transaction has locked."""

    async def add_release(self, release: Release) -> None:
        """Insert a release of a workflow that this transaction has locked."""


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

    async def lead(self, name: str, holder: str, micros: int) -> bool:
        """Lock the leader row; True when `holder` leads from now on, for so long at most."""

    async def stamp(self, limit: int) -> int:
        """Give visible rows without a position the next positions; return how many."""

    async def read(self, after: int, limit: int) -> list[OutboxRow]:
        """Rows with a position above `after`, in order of position."""

    async def cursor(self, name: str) -> int:
        """How far the reader `name` has come; 0 for one not seen before."""

    async def move_cursor(self, name: str, position: int) -> None:
        """Remember how far the reader `name` has come."""

    async def pass_over(self, name: str) -> None:
        """Let the reader `name` have come as far as positions were given."""

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
    def definitions(self) -> DefinitionTable: ...
    @property
    def history(self) -> HistoryTable: ...
    @property
    def outbox(self) -> OutboxTable: ...
    @property
    def identity(self) -> IdentityTables: ...
    @property
    def secrets(self) -> SecretTable: ...

    async def now(self) -> Moment:
        """The clock of the database, at this instant."""

    async def open(self, opening: Opening) -> Opened:
        """Lock the sessions as `sessions.lock` does, then the runs, then the tasks of the runs had.

        The same as three verbs, in as few round trips as the database allows.
        """

    async def begin(self, templates: Sequence[Template], runs: Sequence[Beginning]) -> None:
        """Insert new runs with their tasks, in the order given."""

    async def write(self, changes: Changes) -> None:
        """Save and add it all, as the verbs of the tables do, facts last."""


class Store(Protocol):
    """Durable state."""

    @property
    def watch(self) -> Watch: ...
    @property
    def payloads(self) -> Payloads: ...
    @property
    def reader(self) -> Reader: ...
    @property
    def identity(self) -> IdentityReader: ...

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


__all__ = [
    "FORMAT_MAX",
    "Beginning",
    "Changes",
    "Claim",
    "DefinitionTable",
    "DueTask",
    "HeldTask",
    "HistoryTable",
    "LogChunk",
    "LostTask",
    "NewRun",
    "Opened",
    "Opening",
    "OutboxRow",
    "OutboxTable",
    "Payloads",
    "Reader",
    "ReadyLane",
    "Release",
    "RunTable",
    "Session",
    "SessionTable",
    "StartKey",
    "StartTable",
    "Store",
    "TaskResult",
    "TaskTable",
    "Template",
    "Transaction",
    "Version",
    "Watch",
    "WorkflowRow",
]
