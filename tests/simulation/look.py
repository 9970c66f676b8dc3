"""A look at the database right after a commit, beside the look before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.simulation.executions import Executions
from tests.simulation.fold import Fold, Step
from tidemill.domain.facts import decode_facts
from tidemill.domain.identifiers import Moment, RunId, SessionId, TaskKey, Token
from tidemill.domain.workflow import TaskSpec, Workflow

Query = Callable[..., list[tuple[Any, ...]]]


class TaskRow(NamedTuple):
    """The columns of a task that checkers look at."""

    run_id: RunId
    position: int
    state: str
    epoch: int
    failures: int
    losses: int
    session_id: SessionId | None
    due_at: Moment | None
    hold: str | None
    ready_at: Moment | None

    @property
    def token(self) -> Token:
        """The current grant."""
        return Token(self.run_id, self.position, self.epoch)


class RunRow(NamedTuple):
    """The columns of a run that checkers look at."""

    id: RunId
    namespace: str
    workflow: str
    state: str
    generation: int
    open: int
    failed: int
    next_position: int
    stop: str | None
    quarantine: str | None
    swept: int | None


class SessionRow(NamedTuple):
    """The columns of a session that checkers look at."""

    id: str
    worker: str
    slots: int
    expires_at: Moment
    closed_at: Moment | None


TASKS = (
    "SELECT run_id, position, state, epoch, failures, losses, session_id, due_at, hold, ready_at "
    "FROM task"
)
RUNS = (
    "SELECT id, namespace, workflow, state, generation, open, failed, next_position, stop, "
    "quarantine, swept FROM run"
)
SESSIONS = "SELECT id, worker, slots, expires_at, closed_at FROM session"
OUTBOX = "SELECT number, facts FROM outbox WHERE number > ? ORDER BY number"


class Look:
    """What one commit changed, and all that is needed to judge it."""

    def __init__(self, workflows: Mapping[str, Workflow], executions: Executions) -> None:
        self.workflows = workflows
        self.executions = executions
        self.fold = Fold()
        self.now: Moment = 0
        self.tasks: dict[TaskKey, TaskRow] = {}
        self.runs: dict[RunId, RunRow] = {}
        self.sessions: dict[str, SessionRow] = {}
        self.tasks_before = self.tasks
        self.runs_before = self.runs
        self.sessions_before = self.sessions
        self.facts_read = 0
        self.fact_ids: list[str] = []
        self.outbox: list[bytes] = []
        self.batch_sizes: list[int] = []

    def refresh(self, query: Query, now: Moment) -> None:
        """Read the tables as they are now."""
        self.now = now
        self.tasks_before, self.runs_before = self.tasks, self.runs
        self.sessions_before = self.sessions
        rows = (TaskRow(*row) for row in query(TASKS))
        self.tasks = {TaskKey(row.run_id, row.position): row for row in rows}
        self.runs = {row[0]: RunRow(*row) for row in query(RUNS)}
        self.sessions = {row[0]: SessionRow(*row) for row in query(SESSIONS)}

    def new_steps(self, query: Query) -> Iterator[Step]:
        """Fold the facts that this commit added."""
        self.batch_sizes.clear()
        for number, data in query(OUTBOX, self.facts_read):
            self.facts_read = number
            self.outbox.append(bytes(data))
            facts = decode_facts(data)
            self.batch_sizes.append(len(facts))
            for index, fact in enumerate(facts):
                self.fact_ids.append(f"{number}.{index}")
                yield self.fold.apply(fact)

    def changed(self) -> Iterator[tuple[TaskRow | None, TaskRow]]:
        """Tasks that are not as they were, with what they were."""
        for key, after in self.tasks.items():
            before = self.tasks_before.get(key)
            if before != after:
                yield before, after

    def spec(self, key: TaskKey) -> TaskSpec | None:
        """The definition of a task; None for the node that evaluates the output."""
        workflow = self.workflows[self.runs[key.run_id].workflow]
        return workflow.tasks[key.position] if key.position < len(workflow.tasks) else None

    def is_open(self, session_id: str | None) -> bool:
        """Whether a session is alive, by the clock of the database."""
        session = self.sessions.get(session_id or "")
        return session is not None and session.closed_at is None and session.expires_at > self.now
