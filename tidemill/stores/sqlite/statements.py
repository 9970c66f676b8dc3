"""Named queries on SQLite, inside a transaction and outside."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from tidemill.domain.errors import CommitUnknown, Unavailable
from tidemill.ports.clock import Clock
from tidemill.stores.sqlite.connection import Connection, mapped_errors
from tidemill.stores.sqlite.threads import Place
from tidemill.stores.statements import Row

Result = TypeVar("Result")

ROWS_AT_ONCE = 500
"""They take a few milliseconds at most: others go on between two such parts of a batch."""

SHORT = frozenset(
    {
        "now",
        "lock_sessions",
        "lock_runs_skipping",
        "lock_runs_waiting",
        "peek_runs",
        "save_run",
        "add_run",
        "add_runs_alike",
        "add_tasks_alike",
        "take_places",
        "add_run_label",
        "add_task",
        "lock_tasks",
        "claim_ready",
        "claim_ready_alone",
        "save_task",
        "add_result",
        "add_attempt",
        "append_facts",
        "add_version",
        "renew_sessions_for",
        "take_lead",
        "lock_stamped",
        "move_stamped",
        "read_cursor",
        "move_cursor",
        "pass_over",
    }
)
"""Queries that find each row by a key, or the next rows of an index."""

SHORT_READS = frozenset({"read_inputs", "read_results", "read_versions", "read_cursor", "read_run"})
"""The same, of those that only read."""
Ask: TypeAlias = Callable[[Callable[[Connection], list[Row]], bool], Awaitable[list[Row]]]
"""How a question reaches a connection that may read; whether it is a short one."""


class WriteStatements:
    """The statements of one transaction, which begins with the first of them.

    What is short by construction runs at once, inside the coroutine, a large batch of it in parts:
    handing it to the thread and back would take longer, and both would wait for the interpreter's
    lock row by row. The thread is for what may wait, for a lock or for the disk, and for what may
    be long. As on other databases, one failed statement spoils the transaction: what follows is
    refused, and it cannot commit any more.
    """

    def __init__(self, connection: Connection, place: Place, clock: Clock) -> None:
        self._connection = connection
        self._place = place
        self._clock = clock
        self._begun = False
        self._spoiled = False

    async def fetch(self, name: str, *values: object) -> list[Row]:
        """Rows of a query."""
        return await self._do(lambda: self._connection.fetch(name, *values), name in SHORT)

    async def fetch_batch(self, name: str, batch: Sequence[Row], *values: object) -> list[Row]:
        """Rows of a query for a batch, which travels as JSON."""
        found: list[Row] = []
        for part in _parts(name, batch):
            call = partial(self._connection.fetch, name, part, *values)
            found += await self._do(call, name in SHORT)
            await self._breath(part)
        return found

    async def execute(self, name: str, *values: object) -> int:
        """Rows touched by a command."""
        return await self._do(lambda: self._connection.execute(name, *values), name in SHORT)

    async def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Run a command once per row."""
        for part in _parts(name, batch):
            call = partial(self._connection.execute_batch, name, part)
            await self._do(call, name in SHORT)
            await self._breath(part)

    async def commit(self) -> None:
        """Make it durable."""
        if self._begun:
            await self._place.run(self._commit)
            self._begun = False

    async def rollback(self) -> None:
        """Leave no trace. On the thread: it may still be at a call that nobody waits for."""
        if self._begun:
            await self._place.run(self._connection.rollback)

    async def _do(self, call: Callable[[], Result], short: bool) -> Result:
        self._check()
        # Until the call has succeeded the transaction counts as spoiled, whatever is raised.
        self._spoiled = True
        if not self._begun:
            self._begun = True
            if not self._connection.begin_at_once():
                await self._place.run(self._connection.begin)
        result = call() if short else await self._place.run(call)
        self._spoiled = False
        return result

    async def _breath(self, part: Sequence[Row]) -> None:
        if len(part) >= ROWS_AT_ONCE:
            await self._clock.sleep(0)

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


def _parts(name: str, batch: Sequence[Row]) -> Iterator[list[Row]]:
    at_once = ROWS_AT_ONCE if name in SHORT else max(1, len(batch))
    for begin in range(0, len(batch), at_once):
        yield list(batch[begin : begin + at_once])


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
        return await self._ask(
            lambda connection: connection.fetch(name, *values), name in SHORT_READS
        )

    async def fetch_batch(self, name: str, batch: Sequence[Row], *values: object) -> list[Row]:
        """Rows of a query for a batch, which travels as JSON."""
        if not batch:
            return []
        short = name in SHORT_READS and len(batch) <= ROWS_AT_ONCE
        return await self._ask(
            lambda connection: connection.fetch(name, list(batch), *values), short
        )

    async def execute(self, name: str, *values: object) -> int:
        """Not here."""
        raise AssertionError(f"{name} writes: it belongs into a transaction")

    async def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Not here."""
        raise AssertionError(f"{name} writes: it belongs into a transaction")
