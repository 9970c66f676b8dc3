"""What the tables need of a database: to run named queries, one by one or in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = Sequence[Any]


class Statements(Protocol):
    """Runs named queries. Each dialect has its own text under the same name.

    A batch reaches the text in the way that the database likes best: as one JSON array of arrays
    on SQLite, as one array per column on PostgreSQL.
    """

    async def fetch(self, name: str, *values: object) -> list[Row]:
        """Run a query with plain values and return its rows."""

    async def fetch_batch(self, name: str, batch: Sequence[Row], *values: object) -> list[Row]:
        """Run a query once, for a whole batch, and return its rows."""

    async def execute(self, name: str, *values: object) -> int:
        """Run a command and return how many rows it touched."""

    async def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Run a command for each row of a batch."""
