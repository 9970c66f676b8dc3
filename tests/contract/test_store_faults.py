"""What can happen to PostgreSQL under schedulers at work: faults by their numbers.

Those of docs/reliability.md, section D, that need a whole server or a running mill; single
statements and commits are in test_postgres_faults.py, SQLite in test_sqlite_faults.py.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import asyncpg
import pytest

from tests.contract.lossy_proxy import lossy_proxy
from tests.contract.mill_on_postgres import live_mill
from tests.servers import POSTGRES_OPTIONS, PostgresServer
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.domain.run import RunState
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.ports.queries import RunQuery
from tidemill.runtime.system import SystemEntropy
from tidemill.stores.postgres.store import PostgresStore

CHAIN = Workflow(
    name="chain",
    tasks=(
        TaskSpec(id="a", executor="noop"),
        TaskSpec(id="b", executor="noop", depends_on=("a",)),
        TaskSpec(id="c", executor="noop", depends_on=("b",)),
    ),
)
RESTARTS = 3


@asynccontextmanager
async def a_store(server: PostgresServer) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(server.url)
    await store.migrate()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be maltreated."""
    with PostgresServer() as server:
        yield server


async def test_fault_35_restarts_of_the_server_every_second_lose_and_double_nothing(
    server: PostgresServer,
) -> None:
    async with a_store(server) as store, live_mill(store, ("one", "two")) as mill:
        run_ids = await mill.start(CHAIN, 40)
        for _ in range(RESTARTS):
            await asyncio.sleep(1)
            await asyncio.to_thread(server.restart)
            await until_answered(store)
            run_ids += await mill.start(CHAIN, 20)
        ended = await mill.all_ended(run_ids, 60)
        assert mill.alive

        everything = await store.reader.runs(RunQuery(namespace="default", limit=1_000))
    assert {run.state for run in ended} == {RunState.SUCCEEDED}
    assert {run.state for run in everything} == {RunState.SUCCEEDED}


def go_back(server: PostgresServer, copy: Path) -> None:
    """A failover to a replica that has not got everything yet."""
    server.kill()
    shutil.rmtree(server.folder / "data")
    shutil.copytree(copy, server.folder / "data", copy_function=shutil.copy)
    if server.user is not None:
        for path in [server.folder / "data", *(server.folder / "data").rglob("*")]:
            shutil.chown(path, server.user)
    server.start()


async def test_fault_36_a_failover_that_lost_commits_is_noticed_and_told(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_store(server) as store:
        async with store.transaction() as tx:
            await tx.outbox.append(b"[]")
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(shutil.copytree, server.folder / "data", tmp_path / "copy")
        await asyncio.to_thread(server.start)
        await until_answered(store)
        assert store.alarm() == ""  # an ordinary restart
        async with store.transaction() as tx:
            await tx.outbox.append(b"[]")

        await asyncio.to_thread(go_back, server, tmp_path / "copy")
        await until_answered(store)

        assert "the database has gone back" in store.alarm()
        assert "the database has gone back" in caplog.text


async def until_answered(store: PostgresStore) -> None:
    for _ in range(100):
        try:
            await store.watch.due_runs(1)
        except Unavailable:
            await asyncio.sleep(0.02)
        else:
            return


async def test_fault_37_a_start_whose_commit_was_answered_by_nobody_starts_one_run(
    postgres_dsn: str, postgres: PostgresStore
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with lossy_proxy(postgres_dsn, Path(folder)) as (proxy, dsn):
            store = PostgresStore(dsn, schema=postgres._schema)
            proxy.lose_next_commit = True
            request = runs.StartRequest(workflow=CHAIN)

            (started,) = await runs.start(store, MemoryBus(), SystemEntropy(), [request])

            await store.close()
    assert not proxy.lose_next_commit
    assert started.created
    assert [run.id for run in await postgres.reader.runs(RunQuery(namespace="default"))] == [
        started.run_id
    ]


class ShakyConnection(asyncpg.Connection):
    """Every fifth transaction fails at its end, as one does under serializable isolation."""

    chance = Random(7)
    failures = 0

    async def execute(self, query: str, *args: Any, **options: Any) -> str:
        fails = query == "COMMIT" and self._fails()
        answer = await super().execute("ROLLBACK" if fails else query, *args, **options)
        if fails:
            raise asyncpg.SerializationError("could not serialize access, on purpose")
        return str(answer)

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        if not self.is_in_transaction() and self._fails():
            raise asyncpg.SerializationError("could not serialize access, on purpose")
        return await super().fetch(query, *args, **options)

    def _fails(self) -> bool:
        fails = self.chance.random() < 0.2
        ShakyConnection.failures += fails
        return fails


async def test_fault_38_a_serialization_failure_of_every_fifth_transaction_ends_no_loop(
    postgres_dsn: str, postgres: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    shaky = PostgresStore(postgres_dsn, schema=postgres._schema)
    create_pool = partial(asyncpg.create_pool, connection_class=ShakyConnection)
    with patch("asyncpg.create_pool", create_pool):
        await shaky._pool.get()
        await shaky._renewals.get()

    async with live_mill(shaky) as mill:
        run_ids = [run_id for _ in range(20) for run_id in await mill.start(CHAIN, 2)]
        ended = await mill.all_ended(run_ids, 60)
        assert mill.alive

    assert {run.state for run in ended} == {RunState.SUCCEEDED}
    assert ShakyConnection.failures > 5
    assert "begins anew" not in caplog.text
    await shaky.close()


class StandbyServer(PostgresServer):
    """A replica: it answers, but it only reads, and what it shows may be late."""

    def __init__(self) -> None:
        # Not fewer than where its data comes from.
        super().__init__({**POSTGRES_OPTIONS, "max_connections": "100"})

    def _prepare(self) -> None:
        super()._prepare()
        (self._data / "standby.signal").touch()
        if self.user is not None:
            shutil.chown(self._data / "standby.signal", self.user)

    def _ready(self) -> bool:
        pid = self._data / "postmaster.pid"
        lines = pid.read_text().splitlines() if pid.exists() else []
        return len(lines) > 7 and lines[7].strip() in {"ready", "standby"}


async def test_fault_39_a_store_does_not_connect_to_a_replica() -> None:
    with StandbyServer() as server:
        raw = await asyncpg.connect(server.url)
        assert await raw.fetchval("SELECT pg_is_in_recovery()")
        await raw.close()

        with pytest.raises(Unavailable, match="only reads"):
            await PostgresStore.connect(server.url)


async def test_fault_39_a_store_does_not_connect_to_a_server_that_only_reads() -> None:
    options = {**POSTGRES_OPTIONS, "default_transaction_read_only": "on"}
    with PostgresServer(options) as server, pytest.raises(Unavailable, match="only reads"):
        await PostgresStore.connect(server.url)


async def test_fault_45_a_table_locked_by_an_operator_delays_and_ends_nothing(
    postgres_dsn: str, postgres: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"search_path": str(postgres._schema)}
    operator = await asyncpg.connect(postgres_dsn, server_settings=settings)

    async with live_mill(postgres, ("one", "two")) as mill:
        first = await mill.start(CHAIN, 10)
        await mill.all_ended(first)
        async with operator.transaction():
            await operator.execute("ALTER TABLE task ALTER COLUMN item SET STATISTICS 50")
            await operator.execute("LOCK TABLE task IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(Unavailable, match="lock timeout"):
                await runs.start(
                    mill.store, mill.bus, mill.entropy, [runs.StartRequest(workflow=CHAIN)]
                )
        second = await mill.start(CHAIN, 10)
        ended = await mill.all_ended(first + second)
        assert mill.alive

    assert {run.state for run in ended} == {RunState.SUCCEEDED}
    assert "begins anew" not in caplog.text
    await operator.close()
