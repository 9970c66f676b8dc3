"""Queued jobs that SQL has filled in are like those that the product queues."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from bench.filling import Filler, filling, job_id
from bench.serving import serving
from bench.shapes import job
from tidemill.engine.runs import StartRequest, start
from tidemill.ports.bus import Hint
from tidemill.ports.queries import RunQuery
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.wiring import open_bus, open_store

OWN = {"id", "run_id", "ready_no", "created_at", "ready_at", "started_at"}
"""What differs between two jobs that the product has queued one after the other."""


@pytest.fixture(params=["sqlite", "postgresql"])
async def address(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreAddress]:
    if request.param == "sqlite":
        yield StoreAddress(path=tmp_path / "tidemill.db")
        return
    dsn: str = request.getfixturevalue("postgres_dsn")
    name = f"filling_{uuid4().hex}"
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        yield StoreAddress(dsn=dsn.replace("/postgres?", f"/{name}?"))
        await connection.execute(f"DROP DATABASE {name}")
    finally:
        await connection.close()


async def rows_of(address: StoreAddress, table: str, key: str) -> dict[str, dict[str, object]]:
    if address.path is not None:
        with sqlite3.connect(address.path) as raw:
            raw.row_factory = sqlite3.Row
            found = [dict(row) for row in raw.execute(f"SELECT * FROM {table}")]
        raw.close()
    else:
        connection = await asyncpg.connect(address.dsn)
        found = [dict(row) for row in await connection.fetch(f"SELECT * FROM {table}")]
        await connection.close()
    return {str(row[key]): row for row in found}


@asynccontextmanager
async def filled(address: StoreAddress, count: int) -> AsyncIterator[Filler]:
    async with filling(address) as filler:
        await filler.fill(count)
        yield filler


async def queue_by_product(address: StoreAddress) -> str:
    store, bus = await open_store(address, SystemClock()), open_bus("memory:")
    [started] = await start(store, bus, SystemEntropy(), [StartRequest(workflow=job())])
    await bus.close()
    await store.close()
    return started.run_id


@pytest.mark.parametrize(("table", "key"), [("run", "id"), ("task", "run_id")])
async def test_a_filled_row_is_like_one_of_the_product_column_by_column(
    address: StoreAddress, table: str, key: str
) -> None:
    async with filled(address, 3) as filler:
        theirs = await queue_by_product(address)
        template = filler.template.run_id

    rows = await rows_of(address, table, key)
    like = {name: value for name, value in rows.pop(theirs).items() if name not in OWN}
    rows.pop(template)
    assert len(rows) == 3
    for row in rows.values():
        assert {name: value for name, value in row.items() if name not in OWN} == like


async def test_ids_and_places_of_filled_jobs_rise_with_their_numbers(
    address: StoreAddress,
) -> None:
    async with filled(address, 5_000):
        rows = await rows_of(address, "task", "run_id")

    by_place = sorted(rows, key=lambda run_id: int(str(rows[run_id]["ready_no"])))
    assert by_place == sorted(rows)


async def test_filled_jobs_run_to_their_end(address: StoreAddress) -> None:
    async with filled(address, 20) as filler, serving(address) as system:
        await system.bus.send_hint(Hint(lanes=(filler.template.lane,)))
        while await filler.finished() < 20:
            await system.clock.sleep(0.01)
        runs = await system.store.reader.runs(RunQuery(namespace="default", limit=100))

    assert len(runs) == 21


def test_the_id_of_a_job_is_a_uuid_of_version_7() -> None:
    assert job_id(0x0123456789AB, 4_097) == "01234567-89ac-7001-8000-000000001001"
