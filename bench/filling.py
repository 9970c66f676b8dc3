"""Fills a store with queued jobs by set-based SQL: a million would take the product minutes.

The product writes one job; every other row is a copy of its rows but for the run id and the place
in the lane. Ids rise with the number of the job, as those of the product rise with time. The outbox
is left out: its facts are with their readers long before a backlog is large.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from bench.shapes import job
from tidemill.domain.identifiers import Lane
from tidemill.engine.runs import StartRequest, start
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.wiring import open_bus, open_store
from tidemill.stores.sqlite.connection import connect_writer

CHUNK_ROWS = 50_000
IDS_PER_MILLISECOND = 4_096
BUSY_SECONDS = 10

POSTGRES_COLUMNS = """
SELECT column_name::text FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = $1 ORDER BY ordinal_position
"""
POSTGRES_ID = """
(lpad(to_hex($3::bigint + n / 4096), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
    || '8' || lpad(to_hex(n), 15, '0'))::uuid
"""
POSTGRES_FILL = (
    "INSERT INTO {table} ({columns}) SELECT {values}"
    " FROM template_{table} AS template CROSS JOIN generate_series($1::bigint, $2::bigint) AS n"
)
SQLITE_ID = """
format('%08x-%04x-7%03x-8%03x-%012x',
    (?3 + n / 4096) >> 16, (?3 + n / 4096) & 65535, n % 4096, n >> 48, n & 281474976710655)
"""
SQLITE_FILL = (
    "INSERT INTO {table} ({columns})"
    " WITH RECURSIVE series (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM series WHERE n < ?2)"
    " SELECT {values} FROM series CROSS JOIN template_{table} AS template"
)
SQLITE_PLACE = "template.ready_no + 1 + n"
KEEP_RUN = "CREATE TEMP TABLE template_run AS SELECT * FROM run"
KEEP_TASK = "CREATE TEMP TABLE template_task AS SELECT * FROM task"


def job_id(epoch: int, number: int) -> str:
    """The id of a job that was filled in, as the SQL makes it."""
    milliseconds = epoch + number // IDS_PER_MILLISECOND
    text = f"{milliseconds:012x}7{number % IDS_PER_MILLISECOND:03x}8{number:015x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


@dataclass(frozen=True)
class Template:
    """The job that the product has queued: which store, which run, where it waits."""

    address: StoreAddress
    run_id: str
    lane: Lane


class Filler(ABC):
    """Queued jobs, numbered from 0 in the order of their lane, and what became of them."""

    fill_sql: str
    id_sql: str
    place_sql: str

    def __init__(self, template: Template) -> None:
        self.count = 0
        self.template = template
        self._epoch = time.time_ns() // 1_000_000
        self._statements: list[str] = []

    async def fill(self, count: int) -> None:
        """Queue so many more jobs, in transactions of a bounded size."""
        last = self.count + count
        for first in range(self.count, last, CHUNK_ROWS):
            values = (first, min(first + CHUNK_ROWS, last) - 1, self._epoch)
            await self.commit([(statement, values) for statement in self._statements])
        self.count = last

    async def ended_at(self, number: int) -> int | None:
        """When a job ended, by the clock of the store; None while it has not."""
        return await self.run_ended_at(job_id(self._epoch, number))

    async def finished(self) -> int:
        """How many have ended, to within the slots: they are granted in order."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if await self.ended_at(middle) is None:
                high = middle
            else:
                low = middle + 1
        return low

    @abstractmethod
    async def columns(self, table: str) -> list[str]:
        """The columns of a table."""

    @abstractmethod
    async def commit(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        """Carry out statements in one transaction."""

    @abstractmethod
    async def run_ended_at(self, run_id: str) -> int | None:
        """When a run ended, read by its primary key."""

    @abstractmethod
    async def tidy(self) -> None:
        """Do what the store does by itself in the minutes after so many rows."""

    async def keep_template(self) -> None:
        """Copy the rows of the template: those in the tables change once somebody works."""
        await self.commit([(KEEP_RUN, ()), (KEEP_TASK, ())])
        self._statements = [await self._statement("run", "id")]
        self._statements.append(await self._statement("task", "run_id"))

    async def _statement(self, table: str, key: str) -> str:
        columns = await self.columns(table)
        made = {key: self.id_sql, "ready_no": self.place_sql}
        values = ", ".join(made.get(name, f"template.{name}") for name in columns)
        return self.fill_sql.format(table=table, columns=", ".join(columns), values=values)


class PostgresFiller(Filler):
    """Through a connection of its own."""

    fill_sql, id_sql, place_sql = POSTGRES_FILL, POSTGRES_ID, "nextval('task_ready_no')"

    def __init__(self, template: Template, connection: asyncpg.Connection) -> None:
        super().__init__(template)
        self._connection = connection

    async def columns(self, table: str) -> list[str]:
        """From the catalogue."""
        return [row[0] for row in await self._connection.fetch(POSTGRES_COLUMNS, table)]

    async def commit(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        """In one transaction."""
        async with self._connection.transaction():
            for statement, values in statements:
                await self._connection.execute(statement, *values)

    async def run_ended_at(self, run_id: str) -> int | None:
        """By primary key."""
        found: int | None = await self._connection.fetchval(
            "SELECT ended_at FROM run WHERE id = $1", run_id
        )
        return found

    async def tidy(self) -> None:
        """What autovacuum and the next checkpoint would do."""
        await self._connection.execute("VACUUM (ANALYZE) run, task")
        await self._connection.execute("CHECKPOINT")


class SqliteFiller(Filler):
    """Through a connection of its own, beside that of the owner."""

    fill_sql, id_sql, place_sql = SQLITE_FILL, SQLITE_ID, SQLITE_PLACE

    def __init__(self, template: Template, connection: sqlite3.Connection) -> None:
        super().__init__(template)
        self._connection = connection

    async def columns(self, table: str) -> list[str]:
        """From the schema."""
        found = self._connection.execute("SELECT name FROM pragma_table_info(?1)", (table,))
        return [row[0] for row in found]

    async def commit(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        """In one transaction, and in a thread: the owner of the file may be in this process."""
        await asyncio.to_thread(self._commit, statements)

    async def run_ended_at(self, run_id: str) -> int | None:
        """By primary key."""
        found = self._connection.execute("SELECT ended_at FROM run WHERE id = ?1", (run_id,))
        row = found.fetchone()
        return None if row is None else row[0]

    async def tidy(self) -> None:
        """Bring the log back into the file."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _commit(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for statement, values in statements:
            self._connection.execute(statement, values)
        self._connection.execute("COMMIT")


@asynccontextmanager
async def filling(address: StoreAddress) -> AsyncIterator[Filler]:
    """A store with its tables and one queued job, and the means to queue more; nobody runs yet."""
    template = await _queue_template(address)
    async with _open(template) as filler:
        await filler.keep_template()
        yield filler


@asynccontextmanager
async def _open(template: Template) -> AsyncIterator[Filler]:
    path = template.address.path
    if path is None:
        connection = await asyncpg.connect(template.address.dsn)
        try:
            yield PostgresFiller(template, connection)
        finally:
            await connection.close()
    else:
        raw = connect_writer(str(path))
        try:
            raw.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1_000}")  # the file has an owner
            yield SqliteFiller(template, raw)
        finally:
            raw.close()


async def _queue_template(address: StoreAddress) -> Template:
    """Have the product make its tables and queue one job."""
    store, bus = await open_store(address, SystemClock()), open_bus("memory:")
    try:
        await store.migrate()
        [started] = await start(store, bus, SystemEntropy(), [StartRequest(workflow=job())])
        [ready] = await store.watch.ready_lanes()
    finally:
        await bus.close()
        await store.close()
    return Template(address, started.run_id, ready.lane)
