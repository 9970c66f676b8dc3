"""What a disk, a lock or another process can do to SQLite, done on purpose."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.builders import NOON, a_new_run, a_run, a_task
from tests.contract.conftest import ManualClock
from tests.contract.given import LANE, claimed, given, saved
from tidemill.domain.errors import CommitUnknown, Conflict, NotFound, Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.ports.store import NewRun
from tidemill.stores.errors import StoreRefused
from tidemill.stores.sqlite.store import SqliteStore


class FaultyConnection(sqlite3.Connection):
    """Asks `fault` before each statement: it may raise, or do the work and then raise."""

    fault: Callable[[sqlite3.Connection, str], None] | None = None

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if self.fault is not None:
            self.fault(self, sql)
        return super().execute(sql, *parameters)


def connect_faulty(path: str) -> FaultyConnection:
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=FaultyConnection
    )


def an_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("on purpose")
    error.sqlite_errorcode = code
    return error


@pytest.fixture
async def faulty(clock: ManualClock) -> SqliteStore:
    store = SqliteStore(":memory:", clock, threads=False, connect=connect_faulty)
    await store.migrate()
    return store


def raw_of(store: SqliteStore) -> FaultyConnection:
    raw = store._writer.raw
    assert isinstance(raw, FaultyConnection)
    return raw


async def add(store: SqliteStore, run: NewRun) -> None:
    async with store.transaction() as tx:
        await tx.runs.add([run])
        await tx.outbox.append(b"[]")


async def test_fault_37_a_commit_that_happened_and_then_failed_is_unknown_and_the_write_is_found(
    faulty: SqliteStore,
) -> None:
    new = a_new_run()

    def commit_then_fail(connection: sqlite3.Connection, sql: str) -> None:
        if sql == "COMMIT":
            sqlite3.Connection.execute(connection, sql)
            raise an_error(sqlite3.SQLITE_IOERR_FSYNC)

    raw_of(faulty).fault = commit_then_fail
    with pytest.raises(CommitUnknown):
        await add(faulty, new)

    raw_of(faulty).fault = None
    assert await faulty.reader.run("default", new.run.id) == new.run


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL])
async def test_a_commit_that_is_known_to_have_failed_is_no_commit(
    faulty: SqliteStore, code: int
) -> None:
    new = a_new_run()

    def refuse(_connection: sqlite3.Connection, sql: str) -> None:
        if sql == "COMMIT":
            raise an_error(code)

    raw_of(faulty).fault = refuse
    with pytest.raises(Unavailable) as refusal:
        await add(faulty, new)

    raw_of(faulty).fault = None
    assert type(refusal.value) is Unavailable
    assert await faulty.reader.find_runs("default", new.run.id, 1) == []
    await add(faulty, new)


async def test_fault_41_an_io_error_at_any_statement_leaves_all_or_nothing(
    faulty: SqliteStore,
) -> None:
    survived = 0
    for place in range(1, 20):
        new, calls = a_new_run(), iter(range(1, 1_000))

        def fail_at(_connection: sqlite3.Connection, _sql: str, place: int = place) -> None:
            if next(calls) == place:  # noqa: B023
                raise an_error(sqlite3.SQLITE_IOERR)

        raw_of(faulty).fault = fail_at
        try:
            await add(faulty, new)
            survived += 1
        except Unavailable:
            raw_of(faulty).fault = None
            assert await faulty.reader.find_runs("default", new.run.id, 1) == []
    raw_of(faulty).fault = None

    await add(faulty, a_new_run())
    assert survived > 0


async def test_fault_40_a_full_disk_refuses_and_the_store_recovers_when_there_is_space(
    sqlite_file: SqliteStore,
) -> None:
    raw = sqlite_file._writer.raw
    (pages,) = raw.execute("PRAGMA page_count").fetchone()
    raw.execute(f"PRAGMA max_page_count = {pages + 5}")
    large = a_new_run(input=b"x" * 1_000_000)

    with pytest.raises(Unavailable, match="full"):
        await add(sqlite_file, large)
    assert await sqlite_file.reader.find_runs("default", large.run.id, 1) == []

    raw.execute("PRAGMA max_page_count = 1000000")
    await add(sqlite_file, large)
    assert await sqlite_file.reader.run("default", large.run.id) == large.run
    assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_another_writer_makes_the_store_wait_and_then_give_up(
    sqlite_file: SqliteStore, tmp_path: Path
) -> None:
    new = a_new_run()
    foreign = sqlite3.connect(tmp_path / "tidemill.db", isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unavailable, match="locked"):
        await add(sqlite_file, new)

    foreign.execute("ROLLBACK")
    foreign.close()
    await add(sqlite_file, new)


async def test_claims_go_on_while_a_foreign_snapshot_is_held_open(
    sqlite_file: SqliteStore, tmp_path: Path
) -> None:
    tasks = [a_task() for _ in range(10)]
    await given(sqlite_file, *tasks)
    foreign = sqlite3.connect(tmp_path / "tidemill.db", isolation_level=None)
    foreign.execute("BEGIN")
    foreign.execute("SELECT count(*) FROM task").fetchone()

    floor = 0
    taken: list[TaskRun] = []
    while len(taken) < 10:
        async with sqlite_file.transaction() as tx:
            claim = await tx.tasks.claim(LANE, floor=floor, limit=3, alone=False)
            await tx.outbox.append(b"[]")
        floor, taken = claim.floor, taken + claim.tasks

    assert taken == tasks
    foreign.close()


async def test_lanes_keep_their_order_when_the_file_is_opened_again(
    clock: ManualClock, tmp_path: Path
) -> None:
    first, second = a_task(), a_task()
    for task in (first, second):
        store = SqliteStore(str(tmp_path / "again.db"), clock)
        await store.migrate()
        await given(store, task)
        await store.close()

    store = SqliteStore(str(tmp_path / "again.db"), clock)
    assert await claimed(store) == [first, second]
    await store.close()


async def test_what_comes_back_keeps_its_place_when_the_file_is_opened_again(
    clock: ManualClock, tmp_path: Path
) -> None:
    path = str(tmp_path / "again.db")
    store = SqliteStore(path, clock)
    await store.migrate()
    earlier, waited = a_task(), a_task()
    await given(store, earlier, waited)
    running = msgspec.structs.replace(waited, state=TaskState.RUNNING, epoch=1, session_id="s")
    ended = msgspec.structs.replace(earlier, state=TaskState.SUCCEEDED, ended_at=NOON)
    await saved(store, running, ended)
    await store.close()

    store = SqliteStore(path, clock)
    later = a_task()
    await given(store, later)
    back = msgspec.structs.replace(waited, epoch=1)
    await saved(store, back)

    assert await claimed(store) == [back, later]
    await store.close()


async def test_a_commit_is_synced_to_the_disk(sqlite_file: SqliteStore) -> None:
    raw = sqlite_file._writer.raw

    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_a_number_too_large_is_refused(sqlite_memory: SqliteStore) -> None:
    with pytest.raises(StoreRefused):
        await given(sqlite_memory, a_run(created_at=2**70))


READ_IN_A_LOOP = """
import asyncio, sys
from tidemill.stores.sqlite.store import SqliteStore
class Clock:
    def now(self):
        return int(sys.argv[2])
async def main():
    store = SqliteStore.open_reader(sys.argv[1], Clock())
    for line in sys.stdin:
        found = await store.reader.find_runs("default", "", 1_000)
        print(len(found), flush=True)
    await store.close()
asyncio.run(main())
"""


async def test_a_second_process_reads_while_the_owner_writes(
    sqlite_file: SqliteStore, tmp_path: Path
) -> None:
    path = str(tmp_path / "tidemill.db")
    reader = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", READ_IN_A_LOOP, path, str(NOON)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None

    counts = []
    for _ in range(5):
        async with sqlite_file.transaction() as tx:
            await tx.runs.add([a_new_run()])
            reader.stdin.write(b"look\n")  # it looks before the commit, after it, or in between
            counts.append(int(await reader.stdout.readline()))
    reader.stdin.close()

    assert await reader.wait() == 0
    assert counts == [0, 1, 2, 3, 4]


async def test_a_reader_sees_the_file_after_its_owner_has_left(
    clock: ManualClock, tmp_path: Path
) -> None:
    path, run = str(tmp_path / "left.db"), a_run()
    owner = SqliteStore(path, clock)
    await owner.migrate()
    await given(owner, run)
    await owner.close()

    reader = SqliteStore.open_reader(path, clock)

    assert await reader.reader.run("default", run.id) == run
    assert await reader.watch.ready_lanes() == []
    await reader.close()


async def test_a_file_that_was_closed_is_whole_without_its_log(
    clock: ManualClock, tmp_path: Path
) -> None:
    path, run = tmp_path / "whole.db", a_run()
    owner = SqliteStore(str(path), clock)
    await owner.migrate()
    await given(owner, run)
    assert await owner.reader.run("default", run.id) == run
    await owner.close()

    copy = path.rename(tmp_path / "copy.db")

    reader = SqliteStore.open_reader(str(copy), clock)
    assert await reader.reader.run("default", run.id) == run
    await reader.close()


async def test_a_reader_cannot_write(clock: ManualClock, tmp_path: Path) -> None:
    reader = SqliteStore.open_reader(str(tmp_path / "none.db"), clock)

    with pytest.raises(Conflict):
        reader.transaction()
    with pytest.raises(Conflict):
        await reader.renew_sessions([], 1)
    with pytest.raises(Unavailable):
        await reader.reader.run("default", RunId("any"))
    assert not (tmp_path / "none.db").exists()
    await reader.close()


async def test_without_threads_nothing_ever_waits(sqlite_memory: SqliteStore) -> None:
    async def work() -> None:
        async with sqlite_memory.transaction() as tx:
            await tx.runs.add([a_new_run()])
        await sqlite_memory.watch.ready_lanes()
        with pytest.raises(NotFound):
            await sqlite_memory.reader.run("default", RunId("none"))

    coroutine = work()

    with pytest.raises(StopIteration):
        coroutine.send(None)
