"""A row that makes no sense names its run, so that this run alone goes into quarantine."""

from __future__ import annotations

import pytest

from tests.builders import a_run, a_task
from tests.contract.given import LANE, claimed, given
from tidemill.domain.errors import MalformedRun
from tidemill.ports.store import Store
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.sqlite.store import SqliteStore


async def spoil(store: Store, statement: str) -> None:
    """Change rows as no program of ours would."""
    if isinstance(store, SqliteStore):
        store._writer.raw.execute(statement)
        return
    assert isinstance(store, PostgresStore)
    pool = await store._pool.get()
    async with pool.acquire() as connection:
        await connection.execute(statement)


SPOILED_RUNS = ["labels = '{'", "labels = '[1]'", "stop = 'whim'", "reason = 'none'"]
SPOILED_TASKS = ["kind = 'dream'", "error = '{}'", "error = 'x'", "reason = 'because'"]


@pytest.mark.parametrize("change", SPOILED_RUNS)
async def test_an_unreadable_run_is_named(store: Store, change: str) -> None:
    run = a_run()
    await given(store, run)

    await spoil(store, f"UPDATE run SET {change}")

    with pytest.raises(MalformedRun) as malformed:
        async with store.transaction() as tx:
            await tx.runs.lock([run.id], wait=False)
    assert malformed.value.run_id == run.id


@pytest.mark.parametrize("change", SPOILED_TASKS)
async def test_an_unreadable_task_names_its_run_and_quarantine_frees_the_lane(
    store: Store, change: str
) -> None:
    bad, good = a_task(), a_task()
    await given(store, bad)
    await spoil(store, f"UPDATE task SET {change}")
    await given(store, good)

    with pytest.raises(MalformedRun) as malformed:
        async with store.transaction() as tx:
            await tx.tasks.claim(LANE, floor=0, limit=10, alone=False)

    async with store.transaction() as tx:
        await tx.runs.quarantine(malformed.value.run_id, str(malformed.value))  # type: ignore[arg-type]
    assert malformed.value.run_id == bad.run_id
    assert await claimed(store) == [good]
