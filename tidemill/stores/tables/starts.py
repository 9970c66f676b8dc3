"""Definitions and start keys."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.domain.identifiers import SECOND
from tidemill.ports.rows import StartKey, Version
from tidemill.stores.rows import start_key_from_row, start_key_to_row, version_to_row
from tidemill.stores.statements import Row, Statements

EXTENSION = 3_600 * SECOND
"""When a key that expired is looked at again because its run has not ended."""


class Starts:
    """Implements ports.store.StartTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_versions(self, versions: Sequence[Version]) -> None:
        """Store definitions; one that is there already is left as it is."""
        in_order = sorted(versions, key=lambda version: (version.id, version.namespace))
        rows = [version_to_row(version) for version in in_order]
        await self._statements.execute_batch("add_version", rows)

    async def take_keys(self, keys: Sequence[StartKey]) -> list[StartKey]:
        """Try to take keys; return, for every key asked for, the one that holds.

        Most keys are free, and one statement is enough. The winners of the others are read by a
        statement of their own: the one that loses a race would not see the row that it lost to.
        """
        wished = {_name_of(key): key for key in reversed(keys)}
        holders = await self._take(wished)
        if len(holders) < len(wished):
            lost = sorted(wished.keys() - holders.keys())
            freed = await self._statements.fetch_batch("free_keys", lost)
            holders |= await self._take({tuple(row): wished[tuple(row)] for row in freed})
            left = sorted(wished.keys() - holders.keys())
            found = map(start_key_from_row, await self._statements.fetch_batch("read_keys", left))
            holders |= {_name_of(key): key for key in found}
        return [holders[_name_of(key)] for key in keys]

    async def prune_keys(self, limit: int) -> int:
        """Forget keys that are free again; those whose run goes on are seen again later."""
        expired = await self._statements.fetch("expired_keys", limit)
        busy = sorted(tuple(row[:3]) for row in expired if row[3])
        free = sorted(tuple(row[:3]) for row in expired if not row[3])
        await self._statements.fetch_batch("extend_keys", busy, EXTENSION)
        await self._statements.fetch_batch("free_keys", free)
        return len(expired)

    async def _take(
        self, wished: dict[tuple[str, ...], StartKey]
    ) -> dict[tuple[str, ...], StartKey]:
        rows: list[Row] = [start_key_to_row(wished[name]) for name in sorted(wished)]
        taken = await self._statements.fetch_batch("take_keys", rows)
        return {tuple(row): wished[tuple(row)] for row in taken}


def _name_of(key: StartKey) -> tuple[str, ...]:
    return (key.namespace, key.kind, key.key)
