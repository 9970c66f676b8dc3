"""Where commands look when no server is named: the owner, the store, or PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from tests.process.cluster import fresh_database
from tidemill.domain.errors import Conflict, NotFound
from tidemill.domain.identifiers import RunId
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.runtime import connecting
from tidemill.runtime.addresses import StoreAddress, parse_store
from tidemill.runtime.connecting import connect
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.owner import find_owner
from tidemill.runtime.settings import Settings

WORKFLOW = Workflow(name="orders", tasks=(TaskSpec(id="pick", executor="noop"),))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of its own, and no worker."""
    return Settings(store=StoreAddress(path=tmp_path / "a.db"), workers=0)


async def test_the_owner_of_a_store_is_spoken_to_over_its_socket(settings: Settings) -> None:
    async with Embedded(settings) as owner, connect(settings, changes=True) as reached:
        started = await reached.client.start(WORKFLOW)

        assert reached.client.server.startswith("unix:")
        assert reached.served
        assert (await owner.store.reader.run("default", RunId(started.id))).workflow == "orders"


async def test_one_who_became_owner_since_it_was_looked_for_is_spoken_to(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([None])
    monkeypatch.setattr(connecting, "find_owner", lambda path: next(looks, find_owner(path)))

    async with Embedded(settings), connect(settings, changes=True) as reached:
        assert reached.client.server.startswith("unix:")
        assert reached.served


async def test_a_store_that_nobody_owns_is_changed_as_its_owner_for_a_moment(
    settings: Settings,
) -> None:
    async with connect(settings, changes=True, creates=True) as reached:
        started = await reached.client.start(WORKFLOW)

    async with connect(settings) as reached:
        assert not reached.served
        assert [run.id async for run in reached.client.runs()] == [started.id]


async def test_a_run_that_was_put_aside_is_taken_up_to_be_cancelled(settings: Settings) -> None:
    async with connect(settings, changes=True, creates=True) as reached:
        started = await reached.client.start(WORKFLOW)

    async with connect(settings, changes=True) as reached:
        assert (await reached.client.run(started.id)).quarantine is not None
        await reached.client.cancel(started.id)
        ended = await reached.client.wait(started.id, 10)

    assert (ended.state, ended.quarantine) == ("CANCELLED", None)


async def test_a_store_that_is_not_there_is_made_only_where_that_is_meant(
    settings: Settings,
) -> None:
    with pytest.raises(NotFound, match="there is no store"):
        async with connect(settings, changes=True):
            pass

    assert settings.store.path is not None
    assert not settings.store.path.exists()


async def test_postgresql_is_changed_beside_those_who_serve_it(postgres_dsn: str) -> None:
    url = await fresh_database(postgres_dsn)
    settings = Settings(store=parse_store(url))
    async with Embedded(Settings(store=settings.store, workers=0)):
        pass  # brings the schema up to date

    async with connect(settings, changes=True) as reached:
        started = await reached.client.start(WORKFLOW)
        cancelled = await reached.client.cancel(started.id)

    assert cancelled.stopping or cancelled.ended


async def test_a_command_of_a_later_release_does_not_migrate_the_database(
    postgres_dsn: str,
) -> None:
    url = await fresh_database(postgres_dsn)
    async with Embedded(Settings(store=parse_store(url), workers=0)):
        pass
    connection = await asyncpg.connect(url)
    await connection.execute("DELETE FROM migration WHERE number = 3")

    with pytest.raises(Conflict, match="run `tidemill migrate`"):
        async with connect(Settings(store=parse_store(url)), changes=True):
            pass

    assert not await connection.fetchval("SELECT count(*) FROM migration WHERE number = 3")
    await connection.close()
