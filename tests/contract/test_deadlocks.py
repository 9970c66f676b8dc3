"""Deadlocks on PostgreSQL: none among our own, and those that others cause are survived."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg
import pytest

from tests.contract.mill_on_postgres import LiveMill, live_mill
from tidemill.domain.run import RunState
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.scheduler.config import SchedulerConfig
from tidemill.stores.postgres.store import PostgresStore

DIAMOND = Workflow(
    name="diamond",
    tasks=(
        TaskSpec(id="top", executor="noop"),
        *(TaskSpec(id=f"side-{n}", executor="noop", depends_on=("top",)) for n in range(4)),
        TaskSpec(id="bottom", executor="noop", depends_on=tuple(f"side-{n}" for n in range(4))),
    ),
)
# Renewals and looks as often as they can be, so that they meet the turns.
BUSY = SchedulerConfig(renew_seconds=0.05, scan_seconds=0.05, look_seconds=0.05, sweep_seconds=0.1)
SCHEDULERS = ("one", "two", "three")
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


async def deadlocks(connection: asyncpg.Connection[asyncpg.Record]) -> int:
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    return int(await connection.fetchval(DEADLOCKS))


async def lock_backwards(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Lock tasks, then sessions: against the order that everyone else keeps."""
    with suppress(asyncpg.PostgresError):
        async with connection.transaction():
            await connection.fetch("SELECT 1 FROM task WHERE state = 'RUNNING' LIMIT 20 FOR UPDATE")
            await asyncio.sleep(0.02)
            await connection.fetch("SELECT 1 FROM session ORDER BY id DESC FOR UPDATE")


async def a_day_of_work(mill: LiveMill) -> None:
    """Many runs, a few of which are cancelled while they run."""
    run_ids = [one for _ in range(6) for one in await mill.start(DIAMOND, 25)]
    cancelled = run_ids[::10]

    await asyncio.gather(*(mill.cancel(run_id) for run_id in cancelled))
    ended = await mill.all_ended(run_ids, 60)

    assert all(run.state is RunState.SUCCEEDED for run in ended if run.id not in cancelled)
    assert not any(run.quarantine for run in ended)
    assert mill.alive


async def test_turns_renewals_and_cancels_of_three_schedulers_never_deadlock(
    postgres_dsn: str, postgres: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    observer = await asyncpg.connect(postgres_dsn)
    before = await deadlocks(observer)

    async with live_mill(postgres, SCHEDULERS, config=BUSY) as mill:
        await a_day_of_work(mill)

    await postgres.close()  # a connection tells of its deadlocks at its end
    assert await deadlocks(observer) == before
    assert "begins anew" not in caplog.text
    await observer.close()


async def test_fault_17_a_deadlock_with_a_stranger_is_retried_and_no_loop_ends(
    postgres_dsn: str, postgres: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"search_path": str(postgres._schema)}
    stranger = await asyncpg.connect(postgres_dsn, server_settings=settings)
    observer = await asyncpg.connect(postgres_dsn)
    before = await deadlocks(observer)

    async def interfere() -> None:
        while True:
            await lock_backwards(stranger)
            await asyncio.sleep(0.01)

    async with live_mill(postgres, SCHEDULERS, config=BUSY) as mill:
        interfering = asyncio.create_task(interfere())
        await a_day_of_work(mill)
        interfering.cancel()
        await asyncio.wait([interfering])

    await postgres.close()
    assert await deadlocks(observer) > before
    assert "begins anew" not in caplog.text
    await stranger.close()
    await observer.close()
