"""The store on one SQLite file, or in memory."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from os import PathLike, fspath
from types import TracebackType

from tidemill.domain.errors import Conflict
from tidemill.domain.identifiers import SessionId
from tidemill.ports.clock import Clock
from tidemill.stores.sqlite.connection import MEMORY, Connection, connect_reader, connect_writer
from tidemill.stores.sqlite.migrate import migrate, migrations_left
from tidemill.stores.sqlite.statements import ReadStatements, WriteStatements
from tidemill.stores.sqlite.threads import Here, OwnThread, Place
from tidemill.stores.sqlite.transaction import SqliteTransaction
from tidemill.stores.statements import Row
from tidemill.stores.tables.identity_reader import StoreIdentityReader
from tidemill.stores.tables.payloads import StorePayloads
from tidemill.stores.tables.reader import StoreReader
from tidemill.stores.tables.sessions import in_order
from tidemill.stores.tables.watch import StoreWatch


class SqliteStore:
    """Implements ports.store.Store for the one process that owns the file.

    One connection writes, one transaction at a time; another one reads what is committed. Each has
    a thread for what may take long: see statements.py. A store in memory has the one connection
    only, and readers wait for the transaction under way. Without `threads` every call runs at once
    inside the coroutine that makes it. The clock of the database is the clock given.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        clock: Clock,
        *,
        threads: bool = True,
        connect: Callable[[str], sqlite3.Connection] = connect_writer,
    ) -> None:
        self._path = fspath(path)
        self._clock = clock
        self._writer_place: Place = OwnThread("sqlite-writer") if threads else Here()
        self._reader_place: Place = OwnThread("sqlite-reader") if threads else Here()
        self._writer = Connection(connect(self._path), clock.now)
        self._reader: Connection | None = None
        self._asking = 0  # questions on the reader's thread
        self._turn = asyncio.Lock()
        self._turn_taker: asyncio.Task[object] | None = None
        statements = ReadStatements(self._ask_here if self._path == MEMORY else self._ask_reader)
        self.watch = StoreWatch(statements)
        self.payloads = StorePayloads(statements)
        self.reader = StoreReader(statements)
        self.identity = StoreIdentityReader(statements)

    @staticmethod
    def open_reader(path: str | PathLike[str], clock: Clock) -> SqliteReadStore:
        """The same file for a process that does not own it, to look at."""
        return SqliteReadStore(path, clock)

    def transaction(self) -> TurnAtWriting:
        """Commit when the block ends, roll back when it raises."""
        return TurnAtWriting(self)

    async def renew_sessions(
        self, session_ids: Sequence[SessionId], ttl_micros: int
    ) -> set[SessionId]:
        """Renew between two transactions: there is one writer, and its transactions are short."""
        keys = in_order(session_ids)
        await self.take_turn()
        statements = self.statements()
        try:
            rows = await statements.fetch_batch("renew_sessions_for", keys, ttl_micros)
            await statements.commit()
        finally:
            await self.end_turn(statements)
        return {SessionId(row[0]) for row in rows}

    async def migrate(self, tell: Callable[[str], None] | None = None) -> None:
        """Bring the schema up to date; all is told when all is done."""
        for title in await self._writer_place.run(self._migrate):
            if tell is not None:
                tell(f"applied {title}")

    def _migrate(self) -> list[str]:
        self._writer.be_patient()
        return migrate(self._writer.raw)

    async def migrations_left(self) -> list[str]:
        """Names of what the schema lacks."""
        return await self._writer_place.run(lambda: migrations_left(self._writer.raw))

    def alarm(self) -> str:
        """Nothing: the file has one owner, and no replicas."""
        return ""

    async def close(self) -> None:
        """Let go of connections and threads; safe to call twice."""
        self._writer_place.close()
        self._reader_place.close()
        # The last connection to close moves the log into the file: it must be the one that may.
        if self._reader is not None:
            self._reader.close()
        self._writer.close()

    def statements(self) -> WriteStatements:
        """Statements for whoever has the turn."""
        return WriteStatements(self._writer, self._writer_place, self._clock)

    async def take_turn(self) -> None:
        """Wait until nobody else writes."""
        await self._turn.acquire()
        self._turn_taker = asyncio.current_task()

    async def end_turn(self, statements: WriteStatements) -> None:
        """Undo what was not committed, and let the next one write."""
        try:
            await statements.rollback()
        finally:
            self._turn_taker = None
            self._turn.release()

    async def _ask_reader(
        self, question: Callable[[Connection], list[Row]], short: bool
    ) -> list[Row]:
        # A long question under way has the connection: a short one waits for it on the thread.
        if short and self._reader is not None and self._asking == 0:
            return question(self._reader)
        self._asking += 1
        try:
            return await self._reader_place.run(lambda: question(self._open_reader()))
        finally:
            self._asking -= 1

    def _open_reader(self) -> Connection:
        if self._reader is None:
            self._reader = Connection(connect_reader(self._path), self._clock.now)
        return self._reader

    async def _ask_here(
        self, question: Callable[[Connection], list[Row]], _short: bool
    ) -> list[Row]:
        """Ask the only connection, when it holds nothing uncommitted of somebody else."""
        if self._turn_taker is not None and self._turn_taker is asyncio.current_task():
            return await self._writer_place.run(lambda: question(self._writer))
        async with self._turn:
            return await self._writer_place.run(lambda: question(self._writer))


class TurnAtWriting:
    """Holds the store's turn from entry to exit."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._statements = store.statements()

    async def __aenter__(self) -> SqliteTransaction:
        await self._store.take_turn()
        return SqliteTransaction(self._statements)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self._statements.commit()
        finally:
            await self._store.end_turn(self._statements)


class SqliteReadStore:
    """The store of another process, to look at: never in its way, and without any write."""

    def __init__(self, path: str | PathLike[str], clock: Clock) -> None:
        self._path = fspath(path)
        self._clock = clock
        self._place = OwnThread("sqlite-reader")
        statements = ReadStatements(self._ask)
        self.watch = StoreWatch(statements)
        self.payloads = StorePayloads(statements)
        self.reader = StoreReader(statements)
        self.identity = StoreIdentityReader(statements)

    def transaction(self) -> TurnAtWriting:
        """Refused."""
        raise Conflict(f"{self._path} is open for reading only: its owner writes")

    async def renew_sessions(
        self, session_ids: Sequence[SessionId], ttl_micros: int
    ) -> set[SessionId]:
        """Refused."""
        raise Conflict(f"{self._path} is open for reading only: its owner writes")

    async def migrate(self, tell: Callable[[str], None] | None = None) -> None:
        """Left to the owner."""

    async def migrations_left(self) -> list[str]:
        """Left to the owner."""
        return []

    def alarm(self) -> str:
        """Left to the owner."""
        return ""

    async def close(self) -> None:
        """End the thread; safe to call twice."""
        self._place.close()

    async def _ask(self, question: Callable[[Connection], list[Row]], _short: bool) -> list[Row]:
        return await self._place.run(lambda: self._ask_once(question))

    def _ask_once(self, question: Callable[[Connection], list[Row]]) -> list[Row]:
        # A connection per question: a snapshot held open would keep the owner's WAL growing.
        with closing(Connection(connect_reader(self._path), self._clock.now)) as connection:
            return question(connection)
