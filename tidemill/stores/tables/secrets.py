"""The table of sealed secrets."""

from __future__ import annotations

from tidemill.ports.secrets import SecretKey, SecretRow
from tidemill.stores.statements import Statements


class StoreSecrets:
    """Implements ports.secrets.SecretTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def put(self, key: SecretKey, sealed: bytes) -> bool:
        """Store or replace a secret; True when it is a new one."""
        rows = await self._statements.fetch("put_secret", *key, sealed)
        created_at, changed_at = rows[0]
        return bool(created_at == changed_at)

    async def remove(self, key: SecretKey) -> bool:
        """Forget a secret; False when there is none."""
        return await self._statements.execute("remove_secret", *key) > 0

    async def names(self, namespace: str, limit: int) -> list[SecretRow]:
        """The secrets of a namespace, by name."""
        rows = await self._statements.fetch("list_secrets", namespace, limit)
        return [SecretRow(*row) for row in rows]
