"""Workers, queues and counts."""

from __future__ import annotations

from tidemill.domain.identifiers import Moment
from tidemill.ports.queries import COUNT_MAX, Overview, QueueRow, WorkerRow
from tidemill.ports.rows import Session
from tidemill.stores.rows import session_from_row
from tidemill.stores.statements import Row, Statements
from tidemill.stores.tables.sessions import in_order


class Fleet:
    """The part of the reader that knows who works, and what waits."""

    _statements: Statements

    async def sessions(self, namespace: str) -> list[Session]:
        """Sessions that are open and unexpired, without pools."""
        rows = await self._statements.fetch("list_sessions", namespace)
        return [session_from_row(row) for row in rows]

    async def workers(self, namespace: str) -> list[WorkerRow]:
        """The same, with what they are doing."""
        sessions = await self.sessions(namespace)
        keys = in_order([session.id for session in sessions])
        rows = await self._statements.fetch_batch("count_granted", keys)
        busy = {row[0]: row[1] for row in rows}
        return [WorkerRow(session, busy.get(session.id, 0)) for session in sessions]

    async def queues(self, namespace: str) -> list[QueueRow]:
        """Routes on which something waits or runs, by name."""
        lanes = [row[:3] for row in await self._statements.fetch("ready_lanes")]
        own = sorted({tuple(lane) for lane in lanes if lane[0] == namespace})
        ready = await self._statements.fetch_batch("count_ready", own, COUNT_MAX)
        held = dict(map(tuple, await self._statements.fetch("count_held", namespace, COUNT_MAX)))
        running = dict(map(tuple, await self._statements.fetch("count_running", namespace)))
        waiting = _by_route(ready)
        return [
            QueueRow(
                route=route,
                ready=waiting.get(route, (0, None))[0],
                held=held.get(route, 0),
                running=running.get(route, 0),
                oldest_ready_at=waiting.get(route, (0, None))[1],
            )
            for route in sorted(waiting.keys() | held.keys() | running.keys())
        ]

    async def counts(self, namespace: str, limit: int = COUNT_MAX) -> Overview:
        """A namespace at a glance."""
        sessions = await self.sessions(namespace)
        (row,) = await self._statements.fetch("count_all", namespace, limit)
        return Overview(
            open_runs=row[0],
            ready=row[1],
            held=row[2],
            running=row[3],
            backoff=row[4],
            dead_letters=row[5],
            workers=len(sessions),
            slots=sum(session.slots for session in sessions),
        )


def _by_route(lanes: list[Row]) -> dict[str, tuple[int, Moment | None]]:
    """Lanes of one route differ in priority only."""
    routes: dict[str, tuple[int, Moment | None]] = {}
    for route, count, since in lanes:
        if not count:
            continue  # the lane holds nothing but tasks that run alone
        before, earliest = routes.get(route, (0, None))
        moments = [moment for moment in (earliest, since) if moment is not None]
        routes[route] = (min(before + count, COUNT_MAX), min(moments, default=None))
    return routes
