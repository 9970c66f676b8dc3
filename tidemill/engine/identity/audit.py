"""The audit log: written by everyone who changes something, read by page, verified as a chain."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from tidemill.domain.audit import AuditEntry, Deed, Head, follow, link
from tidemill.domain.errors import Unavailable
from tidemill.engine.gathering import Gatherer
from tidemill.engine.retrying import retrying
from tidemill.ports.store import Store

PAGE = 1_000

logger = logging.getLogger(__name__)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How far the chain holds; `broken_at` is the first number that does not."""

    entries: int
    hash: str
    broken_at: int | None = None


class Auditor:
    """Writes deeds of use cases that know nothing of identity, many at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._gatherer: Gatherer[Deed, None] = Gatherer(self._write)

    async def record(self, deed: Deed) -> None:
        """Append a deed that is done already.

        When the store cannot take it, the log of the process has it: undoing the deed would be
        worse.
        """
        try:
            await self._gatherer.ask(deed)
        except Unavailable as error:
            text = msgspec.json.encode(deed).decode()
            logger.error("audit: %s could not be stored (%s)", text, error)  # noqa: TRY400

    async def _write(self, deeds: Sequence[Deed]) -> list[None]:
        async def once() -> None:
            async with self._store.transaction() as tx:
                head = await tx.identity.audit.lock()
                await tx.identity.audit.append(link(head, deeds))

        await retrying(once)
        return [None] * len(deeds)


async def verify(store: Store) -> Verdict:
    """Go along the whole chain; an entry that was changed, added or taken away breaks it."""
    end = await store.identity.head()
    head, broken_at = Head(), None
    while broken_at is None and (page := await store.identity.chain(head.number, PAGE)):
        head, broken_at = follow(head, page)
        if broken_at is None and any(_is_other(one, end) for one in page):
            broken_at = end.number  # from somewhere before it on, the chain was made anew
    if broken_at is None and head.number < end.number:
        broken_at = head.number + 1  # the end is missing
    return Verdict(entries=head.number, hash=head.hash, broken_at=broken_at)


def _is_other(entry: AuditEntry, end: Head) -> bool:
    return entry.number == end.number and entry.hash != end.hash
