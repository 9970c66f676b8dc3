"""The outbox, its leader and its readers."""

from __future__ import annotations

from tidemill.domain.identifiers import Moment
from tidemill.ports.store import OutboxRow
from tidemill.stores.statements import Statements


class Outbox:
    """Implements ports.store.OutboxTable.

    Numbers are given at insert, so a row may appear behind one with a higher number. Positions are
    given to rows that can be seen already, by one stamper at a time: whoever reads by position
    misses nothing.
    """

    def __init__(self, statements: Statements) -> None:
        self.latest = 0  # the highest number that this transaction has added or read
        self._statements = statements

    async def append(self, facts: bytes) -> None:
        """Add one row: the facts of this transaction."""
        ((number,),) = await self._statements.fetch("append_facts", facts)
        self.latest = max(self.latest, number)

    async def lead(self, name: str, holder: str, until: Moment) -> bool:
        """Lock the leader row; True when `holder` leads now, until the moment given at most."""
        return bool(await self._statements.fetch("take_lead", name, holder, until))

    async def stamp(self, limit: int) -> int:
        """Give visible rows without a position the next positions; return how many."""
        ((last,),) = await self._statements.fetch("lock_stamped")
        stamped = await self._statements.execute("stamp_outbox", last, limit)
        if stamped:
            await self._statements.execute("move_stamped", last + stamped)
        return stamped

    async def read(self, after: int, limit: int) -> list[OutboxRow]:
        """Rows with a position above `after`, in order of position."""
        rows = await self._statements.fetch("read_outbox", after, limit)
        self.latest = max(self.latest, *(row[0] for row in rows), 0)
        return [OutboxRow(*row) for row in rows]

    async def cursor(self, name: str) -> int:
        """How far the reader `name` has come; 0 for one not seen before."""
        rows = await self._statements.fetch("read_cursor", name)
        return int(rows[0][0]) if rows else 0

    async def move_cursor(self, name: str, position: int) -> None:
        """Remember how far the reader `name` has come."""
        await self._statements.execute("move_cursor", name, position)

    async def prune(self, before: Moment, limit: int) -> int:
        """Delete rows older than the moment that every cursor has passed; return how many."""
        return await self._statements.execute("prune_outbox", before, limit)
