"""SQLite under kill -9, torn pages and crowds of writers."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builders import a_new_run
from tests.contract.conftest import ManualClock
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.ports.queries import RunQuery
from tidemill.stores.sqlite.store import SqliteStore

WRITERS = 32
INCREMENTS = 5


async def a_file(path: Path, clock: ManualClock) -> Path:
    """A store with its schema, closed."""
    store = SqliteStore(str(path), clock)
    await store.migrate()
    await store.close()
    return path


async def write_and_be_killed(path: Path, commits: int) -> list[RunId]:
    """What a process had committed, for sure, when it was killed in the midst of its work."""
    writer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.contract.sqlite_writer", str(path)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert writer.stdout is not None
    known = [await writer.stdout.readline() for _ in range(commits)]
    writer.kill()
    known += (await writer.stdout.read()).splitlines()
    await writer.wait()
    return [RunId(line.decode().strip()) for line in known]


async def runs_of(path: Path, clock: ManualClock) -> set[RunId]:
    """What is there after the file was opened again and found whole."""
    store = SqliteStore(str(path), clock)
    assert store._writer.raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = {run.id for run in await store.reader.runs(RunQuery(namespace="default", limit=10_000))}
    await store.close()
    return found


@pytest.mark.parametrize("commits", [3, 20, 47])
async def test_fault_42_killed_in_a_checkpoint_a_file_is_whole_and_has_all_that_was_committed(
    clock: ManualClock, tmp_path: Path, commits: int
) -> None:
    path = await a_file(tmp_path / "killed.db", clock)

    known = await write_and_be_killed(path, commits)

    assert len(known) >= commits
    assert set(known) <= await runs_of(path, clock)


def tear(path: Path, count: int) -> None:
    """Spoil the last bytes of a file."""
    path.write_bytes(path.read_bytes()[:-count] + b"\xff" * count)


@pytest.mark.parametrize("torn", [1, 100, 4_000])
async def test_fault_42_a_torn_last_page_costs_the_last_commit_at_most(
    clock: ManualClock, tmp_path: Path, torn: int
) -> None:
    path = await a_file(tmp_path / "torn.db", clock)
    store = SqliteStore(str(path), clock)
    written = [a_new_run() for _ in range(5)]
    for new in written:
        async with store.transaction() as tx:
            await tx.runs.add([new])
    copy = tmp_path / "copy.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    await store.close()

    tear(Path(f"{copy}-wal"), torn)

    found = await runs_of(copy, clock)
    assert {new.run.id for new in written[:-1]} <= found <= {new.run.id for new in written}


def count_up(path: Path) -> None:
    """As a program that does not know of the owner, and insists."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    for _ in range(INCREMENTS):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE storm SET count = count + 1")
        connection.execute("COMMIT")
    connection.close()


async def add_a_run(store: SqliteStore) -> RunId:
    new = a_new_run()
    async with store.transaction() as tx:
        await tx.runs.add([new])
        await tx.outbox.append(b"[]")
    return new.run.id


async def test_fault_43_among_32_writers_the_store_waits_bounded_and_nothing_is_lost(
    clock: ManualClock, tmp_path: Path
) -> None:
    path = await a_file(tmp_path / "storm.db", clock)
    store = SqliteStore(str(path), clock)
    store._writer.raw.execute("CREATE TABLE storm (count INTEGER)")
    store._writer.raw.execute("INSERT INTO storm VALUES (0)")
    crowd = [threading.Thread(target=count_up, args=(path,)) for _ in range(WRITERS)]
    for writer in crowd:
        writer.start()

    written: set[RunId] = set()
    async with asyncio.timeout(60):
        while any(writer.is_alive() for writer in crowd) or len(written) < 20:
            with suppress(Unavailable):
                written.add(await add_a_run(store))
    for writer in crowd:
        writer.join()

    (count,) = store._writer.raw.execute("SELECT count FROM storm").fetchone()
    await store.close()
    assert count == WRITERS * INCREMENTS
    assert await runs_of(path, clock) == written
