"""The outbox, its leader and its readers."""

from __future__ import annotations

import asyncio

from tidemill.domain.identifiers import Moment
from tidemill.ports.store import OutboxRow
from tidemill.stores.stamp_floor import StampFloor
from tidemill.stores.statements import Statements


class Outbox:
    """Implements ports.store.OutboxTable.

    Numbers are given at insert, so a row may appear behind one with a higher number. Positions are
    given to rows that can be seen already, by one stamper at a time: whoever reads by position
    misses nothing.
    """

    def __init__(self, statements: Statements) -> None:
        self.latest = 0  # the highest number that this transaction has added or read
        self.floor: StampFloor | None = None  # of a store that looks long for what is unstamped
        self._statements = statements

    async def append(self, facts: bytes) -> None:
        """Add one row: the facts of this transaction."""
        ((number,),) = await self._statements.fetch("append_facts", facts)
        self.latest = max(self.latest, number)

    async def lead(self, name: str, holder: str, micros: int) -> bool:
        """Lock the leader row; True when `holder` leads from now on, for so long at most."""
        return bool(await self._statements.fetch("take_lead", name, holder, micros))

    async def stamp(self, limit: int) -> int:
        """Give visible rows without a position the next positions; return how many."""
        ((last, first),) = await self._statements.fetch("lock_stamped", self._lowest())
        if first is None:
            return 0
        if self.floor is not None:
            self.floor.found(first)
        stamped = await self._statements.execute("stamp_outbox", last, limit, first)
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

    async def pass_over(self, name: str) -> None:
        """Let the reader `name` have come as far as positions were given."""
        await self._statements.execute("pass_over", name)

    async def prune(self, before: Moment, limit: int) -> int:
        """Delete rows older than the moment that every cursor has passed; return how many."""
        return await self._statements.execute("prune_outbox", before, limit)

    def _lowest(self) -> int:
        return 0 if self.floor is None else self.floor.at(asyncio.get_running_loop().time())
