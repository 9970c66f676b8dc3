"""Named queries on SQLite, inside a transaction and outside."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from tidemill.domain.errors import CommitUnknown, Unavailable
from tidemill.stores.sqlite.connection import Connection, mapped_errors
from tidemill.stores.sqlite.threads import Place
from tidemill.stores.statements import Row

Result = TypeVar("Result")
Ask: TypeAlias = Callable[[Callable[[Connection], list[Row]]], Awaitable[list[Row]]]
"""How a question reaches a connection that may read."""


class WriteStatements:
    """The statements of one transaction, which begins with the first of them.

    As on other databases, one failed statement spoils the transaction: what follows is refused,
    and it cannot commit any more.
    """

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._begun = False
        self._spoiled = False

    async def fetch(self, name: str, *values: object) -> list[Row]:
        """Rows of a query."""
        return await self._do(lambda: self._connection.fetch(name, *values))

    async def fetch_batch(self, name: str, batch: Sequence[Row], *values: object) -> list[Row]:
        """Rows of a query for a batch, which travels as JSON."""
        return await self.fetch(name, list(batch), *values) if batch else []

    async def execute(self, name: str, *values: object) -> int:
        """Rows touched by a command."""
        return await self._do(lambda: self._connection.execute(name, *values))

    async def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Run a command once per row."""
        if batch:
            await self._do(lambda: self._connection.execute_batch(name, batch))

    async def commit(self) -> None:
        """Make it durable."""
        if self._begun:
            await self._place.run(self._commit)

    async def rollback(self) -> None:
        """Leave no trace."""
        if self._begun:
            await self._place.run(self._connection.rollback)

    async def _do(self, call: Callable[[], Result]) -> Result:
        return await self._place.run(lambda: self._do_here(call))

    def _do_here(self, call: Callable[[], Result]) -> Result:
        self._check()
        # Until the call has succeeded the transaction counts as spoiled, whatever is raised.
        self._spoiled = True
        if not self._begun:
            self._begun = True
            self._connection.begin()
        result = call()
        self._spoiled = False
        return result

    def _check(self) -> None:
        if self._spoiled or (self._begun and not self._connection.raw.in_transaction):
            raise Unavailable("SQLite: the transaction has failed already")

    def _commit(self) -> None:
        try:
            self._check()
            with mapped_errors():
                self._connection.raw.execute("COMMIT")
        except Unavailable as error:
            certain = self._connection.raw.in_transaction or _is_certain(error)
            self._connection.rollback()
            if certain:
                raise
            raise CommitUnknown(str(error)) from error


def _is_certain(error: Unavailable) -> bool:
    """Whether a commit that failed is known to be undone: the disk refused before the end of it.

    After an I/O error the last frames may be in the file though the sync of it failed: a crash now
    would bring them back.
    """
    cause = error.__cause__
    if not isinstance(cause, sqlite3.Error):
        return True
    primary = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
    return primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}


class ReadStatements:
    """Statements outside any transaction; each sees what was committed when it began."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def fetch(self, name: str, *values: object) -> list[Row]:
        """Rows of a query."""
        return await self._ask(lambda connection: connection.fetch(name, *values))

    async def fetch_batch(self, name: str, batch: Sequence[Row], *values: object) -> list[Row]:
        """Rows of a query for a batch, which travels as JSON."""
        return await self.fetch(name, list(batch), *values) if batch else []

    async def execute(self, name: str, *values: object) -> int:
        """Not here."""
        raise AssertionError(f"{name} writes: it belongs into a transaction")

    async def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Not here."""
        raise AssertionError(f"{name} writes: it belongs into a transaction")
