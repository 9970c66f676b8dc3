"""Old programs and a new schema side by side: fault 44 of docs/reliability.md.

A next migration that really alters `task` is applied under schedulers of this release at work.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

from tests.builders import a_run, a_task
from tests.contract.given import given
from tests.contract.mill_on_postgres import live_mill
from tests.contract.test_deadlocks import DIAMOND
from tidemill.buses.memory import MemoryBus
from tidemill.domain.run import PLAIN_FORMAT, RunState
from tidemill.engine import runs
from tidemill.ports.store import FORMAT_MAX
from tidemill.runtime.system import SystemEntropy
from tidemill.stores.migrator import Migration, load_migrations
from tidemill.stores.postgres.store import PostgresStore

NEXT = Path(__file__).with_name("next_release")
STEPS = ("task_notes", "task_notes_checked", "task_notes_found")


def next_release() -> list[Migration]:
    """The migrations of this release, and those of the one after it."""
    known = load_migrations("tidemill.stores.postgres")
    texts = [(name, (NEXT / f"{name}.sql").read_text()) for name in STEPS]
    return known + [
        Migration(number, name, text, hashlib.sha256(text.encode()).hexdigest())
        for number, (name, text) in enumerate(texts, len(known) + 1)
    ]


def with_next_release() -> AbstractContextManager[object]:
    """A migrator of the release after this one."""
    migrations = next_release()
    return patch("tidemill.stores.postgres.migrate.load_migrations", lambda _: migrations)


@pytest.fixture
async def other(postgres_dsn: str, postgres: PostgresStore) -> AsyncIterator[PostgresStore]:
    """The same schema, for another process."""
    store = PostgresStore(postgres_dsn, schema=postgres._schema)
    yield store
    await store.close()


async def test_fault_44_a_migration_under_load_stops_no_scheduler_of_the_release_before(
    postgres: PostgresStore, other: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    async with live_mill(postgres, ("one", "two")) as mill:
        run_ids = await mill.start(DIAMOND, 20)
        with with_next_release():
            migrating = asyncio.create_task(other.migrate(told.append))
            while not migrating.done():
                run_ids += await mill.start(DIAMOND, 5)
                await asyncio.sleep(0.02)
        run_ids += await mill.start(DIAMOND, 20)
        ended = await mill.all_ended(run_ids, 60)
        assert mill.alive

    applied = [text for text in told if text.startswith("applied")]
    assert applied == [f"applied {migration.title}" for migration in next_release()[-3:]]
    assert {run.state for run in ended} == {RunState.SUCCEEDED}
    assert "begins anew" not in caplog.text


async def test_fault_44_a_program_may_go_back_one_release_on_a_newer_schema(
    postgres: PostgresStore, other: PostgresStore
) -> None:
    with with_next_release():
        await other.migrate()

    assert await postgres.migrations_left() == []
    await postgres.migrate()
    async with live_mill(postgres) as mill:
        (run,) = await mill.all_ended(await mill.start(DIAMOND, 1))

    assert run.state is RunState.SUCCEEDED


async def test_fault_44_rows_of_a_later_format_are_left_alone_and_counted(
    postgres: PostgresStore,
) -> None:
    later = a_run(format=FORMAT_MAX + 1)
    task = msgspec.structs.replace(a_task(run_id=later.id), format=FORMAT_MAX + 1)
    await given(postgres, later, task)

    async with live_mill(postgres) as mill:
        (run,) = await mill.all_ended(await mill.start(DIAMOND, 1))
        await asyncio.sleep(0.5)

    assert run.state is RunState.SUCCEEDED
    assert await postgres.reader.run("default", later.id) == later
    assert await postgres.reader.tasks("default", later.id, -1, 10) == [task]
    assert await postgres.watch.foreign_runs(10) == 1


@contextmanager
def release_without_pauses() -> Iterator[None]:
    """Stores as the release before the one that knows pauses had them."""
    with ExitStack() as stack:
        for table in ("runs", "tasks", "watch"):
            stack.enter_context(patch(f"tidemill.stores.tables.{table}.FORMAT_MAX", PLAIN_FORMAT))
        yield


async def test_fault_44_a_release_that_knows_no_pauses_leaves_a_paused_run_alone(
    postgres: PostgresStore,
) -> None:
    bus = MemoryBus()
    requests = [runs.StartRequest(workflow=DIAMOND)]
    (started,) = await runs.start(postgres, bus, SystemEntropy(), requests)
    run_id = started.run_id
    await runs.pause(postgres, bus, "default", run_id)

    with release_without_pauses():
        async with live_mill(postgres) as mill:
            (other,) = await mill.all_ended(await mill.start(DIAMOND, 1))
            await asyncio.sleep(0.5)
    left = await postgres.reader.run("default", run_id)
    await runs.resume(postgres, bus, "default", run_id)
    async with live_mill(postgres) as mill:
        (run,) = await mill.all_ended([run_id])

    assert (left.state, left.quarantine) == (RunState.PAUSED, None)
    assert other.state is run.state is RunState.SUCCEEDED
