"""What is read outside of transactions: by timers, for assignments, and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tidemill.domain.identifiers import RunId, SessionId, TaskKey, VersionId
from tidemill.domain.run import Run, RunKind
from tidemill.domain.task_run import Attempt, TaskRun
from tidemill.ports.queries import (
    COUNT_MAX,
    DeadGroup,
    DeadQuery,
    Job,
    JobQuery,
    Overview,
    QueueRow,
    RunQuery,
    WorkerRow,
    WorkflowQuery,
)
from tidemill.ports.rows import (
    DueTask,
    HeldTask,
    LostTask,
    OutboxRow,
    ReadyLane,
    Release,
    Session,
    Version,
    WorkflowRow,
)
from tidemill.ports.secrets import SecretKey


class Watch(Protocol):
    """What timers look for. No locks are taken: the answers are hints for a turn to check."""

    async def due_tasks(self, limit: int) -> list[DueTask]:
        """Tasks whose `due_at` has come, the longest overdue first."""

    async def due_runs(self, limit: int) -> list[RunId]:
        """Open runs whose `due_at` has come and that are not stopping yet."""

    async def lost_tasks(self, limit: int, *, expired: bool) -> list[LostTask]:
        """Granted tasks whose session is closed, or (with `expired`) has expired."""

    async def orphaned_tasks(self, limit: int) -> list[LostTask]:
        """Granted tasks whose session is missing. Looks at all grants: to be asked now and then."""

    async def unsettled_runs(self, limit: int) -> list[RunId]:
        """Runs with work for a turn: tasks to write, to stop, to hold or to admit, or to tell."""

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

    async def secrets(self, keys: Sequence[SecretKey]) -> Mapping[SecretKey, bytes]:
        """Secrets as they are sealed now; one that is not there is left out."""


class RunReader(Protocol):
    """Runs and their tasks, as people look at them. What is of another namespace is not there."""

    async def run(self, namespace: str, run_id: RunId) -> Run:
        """One run, or NotFound."""

    async def find_runs(self, namespace: str, prefix: str, limit: int) -> list[RunId]:
        """Ids of runs that begin or end with the text, newest first."""

    async def find_by_key(self, namespace: str, kind: RunKind, key: str) -> RunId | None:
        """The run that a key has started, while the key is kept."""

    async def runs(self, query: RunQuery) -> list[Run]:
        """A page of runs."""

    async def tasks(self, namespace: str, run_id: RunId, after: int, limit: int) -> list[TaskRun]:
        """Tasks of a run with a position above `after`, in order of position."""

    async def task(self, namespace: str, key: TaskKey) -> TaskRun:
        """One task, or NotFound."""

    async def attempts(self, namespace: str, key: TaskKey) -> list[Attempt]:
        """The attempts of a task before the latest, oldest first."""

    async def logs(self, namespace: str, key: TaskKey) -> Mapping[int, str]:
        """The kept output of a task's attempts, by epoch; a first line counts what was dropped."""


class WorkReader(Protocol):
    """Jobs, dead letters, and how the work gets on."""

    async def jobs(self, query: JobQuery) -> list[Job]:
        """A page of jobs."""

    async def job(self, namespace: str, run_id: RunId) -> Job:
        """One job, or NotFound; a run that is no job is not found either."""

    async def dead_letters(self, query: DeadQuery) -> list[TaskRun]:
        """A page of FAILED tasks that were not discarded."""

    async def dead_groups(self, namespace: str) -> list[DeadGroup]:
        """Dead letters that failed alike, the largest group first.

        Of the newest TEXT_ROWS_MAX dead letters.
        """

    async def sessions(self, namespace: str) -> list[Session]:
        """Sessions that are open and unexpired, without pools."""

    async def workers(self, namespace: str) -> list[WorkerRow]:
        """The same, with what they are doing."""

    async def queues(self, namespace: str) -> list[QueueRow]:
        """Routes on which something waits or runs, by name."""

    async def counts(self, namespace: str, limit: int = COUNT_MAX) -> Overview:
        """A namespace at a glance; each count stops at the limit."""


class DefinitionReader(Protocol):
    """Workflows and their releases. A workflow that was removed is not there."""

    async def workflow(self, namespace: str, name: str) -> WorkflowRow:
        """One workflow by its name, or NotFound; a draft without a release is found too."""

    async def workflow_by_id(self, namespace: str, workflow_id: str) -> WorkflowRow:
        """One workflow by its id, or NotFound."""

    async def workflows(self, query: WorkflowQuery) -> list[WorkflowRow]:
        """A page of workflows."""

    async def release(self, namespace: str, name: str, number: int) -> Release:
        """One release, or NotFound."""

    async def releases(self, namespace: str, name: str, before: int, limit: int) -> list[Release]:
        """Releases of a workflow with a number below `before`, newest first."""


class EventReader(Protocol):
    """Facts of all namespaces, for whoever follows them by position and keeps their own place."""

    async def events_after(self, position: int, limit: int) -> list[OutboxRow]:
        """Outbox rows with a position above, in order of position."""

    async def events_head(self) -> int:
        """The highest position given so far; 0 when there is none."""

    async def events_floor(self) -> int:
        """The lowest position that is still kept; one above the head when none is."""


class Reader(RunReader, WorkReader, DefinitionReader, EventReader, Protocol):
    """What people look at. Every question but those for events is about one namespace."""
