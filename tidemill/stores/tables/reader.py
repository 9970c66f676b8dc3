"""What people look at."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import Run, RunKind
from tidemill.domain.task_run import Attempt, TaskRun
from tidemill.ports.queries import RunQuery
from tidemill.ports.rows import OutboxRow
from tidemill.stores.rows import attempt_from_row, run_from_row, task_from_row
from tidemill.stores.statements import Statements
from tidemill.stores.tables.dead_letters import DeadLetters
from tidemill.stores.tables.definitions import DefinitionsRead
from tidemill.stores.tables.fleet import Fleet
from tidemill.stores.tables.jobs import Jobs
from tidemill.stores.tables.listing import Listing


class StoreReader(Jobs, DeadLetters, Fleet, DefinitionsRead):
    """Implements ports.reading.Reader."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._listing = Listing(statements)

    async def run(self, namespace: str, run_id: RunId) -> Run:
        """One run, or NotFound."""
        rows = await self._statements.fetch("read_run", namespace, run_id)
        if not rows:
            raise NotFound(f"there is no run {run_id}: `tidemill runs` lists those there are")
        return run_from_row(rows[0])

    async def find_runs(self, namespace: str, prefix: str, limit: int) -> list[RunId]:
        """Ids of runs that begin or end with the text, newest first."""
        rows = await self._statements.fetch("find_runs", namespace, prefix, limit)
        return [RunId(row[0]) for row in rows]

    async def find_by_key(self, namespace: str, kind: RunKind, key: str) -> RunId | None:
        """The run that a key has started, while the key is kept."""
        rows = await self._statements.fetch("find_key", namespace, kind.value, key)
        return RunId(rows[0][0]) if rows else None

    async def runs(self, query: RunQuery) -> list[Run]:
        """A page of runs."""
        return await self._listing.page(query)

    async def tasks(self, namespace: str, run_id: RunId, after: int, limit: int) -> list[TaskRun]:
        """Tasks of a run with a position above `after`, in order of position."""
        rows = await self._statements.fetch("list_tasks", namespace, run_id, after, limit)
        return [task_from_row(row) for row in rows]

    async def task(self, namespace: str, key: TaskKey) -> TaskRun:
        """One task, or NotFound."""
        found = await self.tasks(namespace, key.run_id, key.position - 1, 1)
        if not found or found[0].position != key.position:
            raise NotFound(f"run {key.run_id} has no task at position {key.position}")
        return found[0]

    async def attempts(self, namespace: str, key: TaskKey) -> list[Attempt]:
        """The attempts of a task before the latest, oldest first."""
        rows = await self._statements.fetch("list_attempts", namespace, *key)
        return [attempt_from_row(row) for row in rows]

    async def logs(self, namespace: str, key: TaskKey) -> Mapping[int, str]:
        """The kept output of a task's attempts, by epoch."""
        rows = await self._statements.fetch("list_logs", namespace, *key)
        return {epoch: _output(data, dropped) for epoch, data, dropped in rows}

    async def events_after(self, position: int, limit: int) -> list[OutboxRow]:
        """Outbox rows with a position above, in order of position."""
        rows = await self._statements.fetch("read_outbox", position, limit)
        return [OutboxRow(*row) for row in rows]

    async def events_head(self) -> int:
        """The highest position given so far; 0 when there is none."""
        return int((await self._statements.fetch("read_cursor", "$stamped"))[0][0])

    async def events_floor(self) -> int:
        """The lowest position that is still kept; one above the head when none is."""
        ((floor,),) = await self._statements.fetch("read_floor")
        return await self.events_head() + 1 if floor is None else int(floor)


def _output(data: bytes, dropped: int) -> str:
    """What is kept, after a line about what is not."""
    # What was cut off may leave a part of a character at the beginning.
    text = data.decode(errors="ignore")
    return f"… {dropped} bytes of earlier output dropped …\n{text}" if dropped else text
