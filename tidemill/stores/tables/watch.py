"""What timers look for."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.domain.identifiers import Lane, RunId, SessionId, Token
from tidemill.domain.task_run import TaskState
from tidemill.ports.store import FORMAT_MAX, DueTask, HeldTask, LostTask, ReadyLane
from tidemill.stores.rows import held_task_from_row
from tidemill.stores.statements import Statements
from tidemill.stores.tables.sessions import in_order


class StoreWatch:
    """Implements ports.store.Watch. Runs in quarantine are in none of the answers."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def due_tasks(self, limit: int) -> list[DueTask]:
        """Tasks whose `due_at` has come, the longest overdue first."""
        rows = await self._statements.fetch("due_tasks", limit, FORMAT_MAX)
        return [DueTask(Token(*row[:3]), TaskState(row[3])) for row in rows]

    async def due_runs(self, limit: int) -> list[RunId]:
        """Open runs whose `due_at` has come and that are not stopping yet."""
        rows = await self._statements.fetch("due_runs", limit, FORMAT_MAX)
        return [RunId(row[0]) for row in rows]

    async def lost_tasks(self, limit: int, *, expired: bool) -> list[LostTask]:
        """Granted tasks whose session is closed, or (with `expired`) has expired."""
        rows = await self._statements.fetch("lost_tasks", limit, expired, FORMAT_MAX)
        return [LostTask(Token(*row[:3]), row[3]) for row in rows]

    async def orphaned_tasks(self, limit: int) -> list[LostTask]:
        """Granted tasks whose session is missing."""
        rows = await self._statements.fetch("orphaned_tasks", limit, FORMAT_MAX)
        return [LostTask(Token(*row[:3]), row[3]) for row in rows]

    async def unsettled_runs(self, limit: int) -> list[RunId]:
        """Runs with work for a turn: tasks to write, to stop, to hold or to admit, or to tell."""
        rows = await self._statements.fetch("unsettled_runs", limit, FORMAT_MAX)
        return [RunId(row[0]) for row in rows]

    async def foreign_runs(self, limit: int) -> int:
        """How many runs are of a later release, up to the limit."""
        return len(await self._statements.fetch("list_foreign_runs", FORMAT_MAX, limit))

    async def ready_lanes(self) -> list[ReadyLane]:
        """Lanes with at least one READY task that is not held, or held ALONE."""
        rows = await self._statements.fetch("ready_lanes")
        return [ReadyLane(Lane(*row[:3]), bool(row[3])) for row in rows]

    async def held_by(self, session_ids: Sequence[SessionId]) -> dict[SessionId, list[HeldTask]]:
        """What sessions have been granted; each of those asked for is in the answer."""
        held: dict[SessionId, list[HeldTask]] = {one: [] for one in session_ids}
        for row in await self._statements.fetch_batch("held_tasks", in_order(session_ids)):
            held[row[5]].append(held_task_from_row(row))
        return held
