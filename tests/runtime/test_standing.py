"""How a serving process says it stands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.health import Health
from tidemill.runtime.parts import Parts
from tidemill.runtime.settings import Settings
from tidemill.runtime.standing import Standing
from tidemill.stores.sqlite.store import SqliteStore


class WentBack(SqliteStore):
    """A store that lacks what was committed."""

    def alarm(self) -> str:
        return "the database has gone back"


class Watched(Standing):
    """Counts how often it looks."""

    looks = 0

    async def _look(self) -> Health:
        self.looks += 1
        return await super()._look()


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    path = tmp_path / "tidemill.db"
    parts = Parts(Settings(store=StoreAddress(path=path)), lambda _: None)
    async with parts.exit:
        parts.store = WentBack(str(path), parts.clock)
        parts.exit.push_async_callback(parts.store.close)
        await parts.store.migrate()
        parts.is_open = True
        yield parts


async def test_a_database_that_went_back_is_told_in_health(parts: Parts) -> None:
    health = await Standing("scheduler", parts).look()

    assert health.ready
    assert "store: the database has gone back" in health.notes


async def test_many_who_ask_at_once_cost_the_store_one_look(parts: Parts) -> None:
    standing = Watched("scheduler", parts)

    answers = await asyncio.gather(*(standing.look() for _ in range(50)))

    assert len(set(map(id, answers))) == 1
    assert standing.looks == 1


async def test_draining_is_told_at_once(parts: Parts) -> None:
    standing = Standing("scheduler", parts)
    assert (await standing.look()).ready

    standing.draining = True

    assert (await standing.look()).reasons == ["draining"]
