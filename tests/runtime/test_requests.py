"""Changes that commands make in a database which others serve."""

from __future__ import annotations

import asyncpg
import pytest

from tests.process.cluster import fresh_database
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Conflict
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine.runs import StartRequest, start
from tidemill.runtime.addresses import parse_store
from tidemill.runtime.requests import cancel_run
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemEntropy
from tidemill.stores.postgres.store import PostgresStore


async def test_a_cancel_of_a_later_release_does_not_migrate_the_database(postgres_dsn: str) -> None:
    url = await fresh_database(postgres_dsn)
    store = PostgresStore(url)
    await store.migrate()
    request = StartRequest(workflow=Workflow(name="w", tasks=(TaskSpec(id="a", executor="noop"),)))
    [started] = await start(store, MemoryBus(), SystemEntropy(), [request])
    connection = await asyncpg.connect(url)
    await connection.execute("DELETE FROM migration WHERE number = 3")
    await connection.close()

    with pytest.raises(Conflict, match="run `tidemill migrate`"):
        await cancel_run(Settings(store=parse_store(url)), started.run_id)

    assert len(await store.migrations_left()) == 1
    await store.close()
