"""Definitions and start keys."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.ports.store import StartKey, Version
from tidemill.stores.rows import start_key_from_row, start_key_to_row, version_to_row
from tidemill.stores.statements import Statements


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

        The winners are read by a statement of their own: the one that loses a race would not see
        the row that it lost to.
        """
        names = sorted({_name_of(key) for key in keys})
        await self._statements.fetch_batch("free_keys", names)
        rows = [start_key_to_row(key) for key in sorted(keys, key=_name_of)]
        await self._statements.execute_batch("take_key", rows)
        found = map(start_key_from_row, await self._statements.fetch_batch("read_keys", names))
        holders = {_name_of(key): key for key in found}
        return [holders[_name_of(key)] for key in keys]


def _name_of(key: StartKey) -> tuple[str, str, str]:
    return (key.namespace, key.kind, key.key)
