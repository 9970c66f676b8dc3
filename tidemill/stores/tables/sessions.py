"""The session table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidemill.domain.identifiers import Moment, SessionId
from tidemill.ports.store import HeldTask, Session
from tidemill.stores.rows import held_task_from_row, session_from_row, session_to_row
from tidemill.stores.statements import Statements

PRUNE_MAX = 1_000


class Sessions:
    """Implements ports.store.SessionTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def open(self, session: Session) -> None:
        """Insert a session; one that is there already is left as it is."""
        await self._statements.execute("open_session", *session_to_row(session))

    async def get(self, session_id: SessionId) -> Session | None:
        """Lock one session against everyone, and return it, closed or not."""
        rows = await self._statements.fetch("get_session", session_id)
        return session_from_row(rows[0]) if rows else None

    async def lock(self, session_ids: Collection[SessionId]) -> set[SessionId]:
        """Keep these sessions from being closed; return those open and unexpired right now."""
        rows = await self._statements.fetch_batch("lock_sessions", in_order(session_ids))
        return {SessionId(row[0]) for row in rows}

    async def count_granted(
        self, pools: Sequence[SessionId], members: Sequence[SessionId]
    ) -> dict[SessionId, int]:
        """Hold pools alone until the end, and count what they and their members were granted."""
        locked = await self._statements.fetch_batch("lock_pools", in_order(pools))
        counts = {SessionId(row[0]): 0 for row in locked} | dict.fromkeys(members, 0)
        rows = await self._statements.fetch_batch("count_granted", in_order(list(counts)))
        return counts | {SessionId(row[0]): row[1] for row in rows}

    async def held(self, session_id: SessionId) -> list[HeldTask]:
        """What a session has been granted; complete when this transaction locked it by `get`."""
        rows = await self._statements.fetch("granted_tasks", session_id)
        return [held_task_from_row(row) for row in rows]

    async def close(self, session_ids: Sequence[SessionId]) -> None:
        """End sessions; a closed one stays closed."""
        keys = in_order(session_ids)
        await self._statements.fetch_batch("lock_sessions_to_close", keys)
        await self._statements.fetch_batch("close_sessions", keys)

    async def replace(self, old: SessionId, new: SessionId) -> None:
        """Close a session that this transaction has locked by `get`, in favour of another."""
        await self._statements.execute("replace_session", old, new)

    async def close_all(self) -> None:
        """End every session: the first act of a new exclusive owner."""
        await self._statements.execute("close_all_sessions")

    async def prune(self, before: Moment) -> int:
        """Forget sessions closed or expired before, unless a task points at them."""
        return await self._statements.execute("prune_sessions", before, PRUNE_MAX)


def in_order(session_ids: Collection[SessionId]) -> list[tuple[SessionId]]:
    """The ids as a batch, each once, in the order in which everyone locks them."""
    return [(session_id,) for session_id in sorted(set(session_ids))]
