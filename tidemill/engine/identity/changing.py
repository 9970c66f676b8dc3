"""One change of identity: a transaction that writes what happened into the audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidemill.domain.audit import Deed, link
from tidemill.domain.errors import TidemillError
from tidemill.ports.identity import IdentityTables
from tidemill.ports.store import Store


class Change:
    """A change under way; its deeds are committed with it."""

    def __init__(self, tables: IdentityTables) -> None:
        self.accounts = tables.accounts
        self.keys = tables.keys
        self.logins = tables.logins
        self.settings = tables.settings
        self.deeds: list[Deed] = []
        self.refusal: TidemillError | None = None

    def refuse(self, error: TidemillError, deed: Deed) -> None:
        """Note that something was tried in vain; the error is raised once that is committed."""
        self.deeds.append(deed)
        self.refusal = error

    def tell(self, deed: Deed) -> None:
        """Note what was done."""
        self.deeds.append(deed)


@asynccontextmanager
async def changing(store: Store) -> AsyncIterator[Change]:
    """Change identity, one change at a time; what is told is appended at the end."""
    async with store.transaction() as tx:
        head = await tx.identity.audit.lock()
        change = Change(tx.identity)
        yield change
        await tx.identity.audit.append(link(head, change.deeds))
    if change.refusal is not None:
        raise change.refusal
