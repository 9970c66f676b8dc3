"""What people look at."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import Run
from tidemill.domain.task_run import Attempt, TaskRun
from tidemill.ports.queries import DeadQuery, RunQuery
from tidemill.ports.store import Session
from tidemill.stores.rows import attempt_from_row, run_from_row, session_from_row, task_from_row
from tidemill.stores.statements import Statements


class StoreReader:
    """Implements ports.store.Reader."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def run(self, run_id: RunId) -> Run:
        """One run, or NotFound."""
        rows = await self._statements.fetch("read_run", run_id)
        if not rows:
            raise NotFound(f"there is no run {run_id}: `tidemill runs` lists those there are")
        return run_from_row(rows[0])

    async def find_runs(self, prefix: str, limit: int) -> list[RunId]:
        """Ids of runs that begin or end with the text, newest first."""
        rows = await self._statements.fetch("find_runs", prefix, limit)
        return [RunId(row[0]) for row in rows]

    async def runs(self, query: RunQuery) -> list[Run]:
        """A page of runs."""
        states = [state.value for state in query.states]
        rows = await self._statements.fetch(
            "list_runs", states, query.namespace, query.workflow, query.before, query.limit
        )
        return [run_from_row(row) for row in rows]

    async def tasks(self, run_id: RunId, after: int, limit: int) -> list[TaskRun]:
        """Tasks of a run with a position above `after`, in order of position."""
        rows = await self._statements.fetch("list_tasks", run_id, after, limit)
        return [task_from_row(row) for row in rows]

    async def attempts(self, key: TaskKey) -> list[Attempt]:
        """The attempts of a task before the latest, oldest first."""
        return [
            attempt_from_row(row) for row in await self._statements.fetch("list_attempts", *key)
        ]

    async def logs(self, key: TaskKey) -> Mapping[int, str]:
        """The kept output of a task's attempts, by epoch."""
        rows = await self._statements.fetch("list_logs", *key)
        return {epoch: _output(data, dropped) for epoch, data, dropped in rows}

    async def dead_letters(self, query: DeadQuery) -> list[TaskRun]:
        """A page of FAILED tasks."""
        run_id, position = query.before or (None, None)
        rows = await self._statements.fetch(
            "list_dead", query.namespace, query.run_id, run_id, position, query.limit
        )
        return [task_from_row(row) for row in rows]

    async def sessions(self) -> list[Session]:
        """Sessions that are open and unexpired."""
        return [session_from_row(row) for row in await self._statements.fetch("list_sessions")]


def _output(data: bytes, dropped: int) -> str:
    """What is kept, after a line about what is not."""
    # What was cut off may leave a part of a character at the beginning.
    text = data.decode(errors="ignore")
    return f"… {dropped} bytes of earlier output dropped …\n{text}" if dropped else text
