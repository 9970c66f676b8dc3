"""Many dead letters at once, and keys that are forgotten, on a mill with virtual time."""

from __future__ import annotations

import pytest

from tests.builders import a_start_key
from tests.roles.mill import Mill, a_step, on_a_mill
from tidemill.domain.errors import Conflict, Unavailable
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RunKind
from tidemill.domain.workflow import RetryPolicy
from tidemill.engine import dead_letters
from tidemill.engine.dead_letters import BulkReplay
from tidemill.engine.preparing import KEY_LIFE
from tidemill.ports.queries import DeadQuery
from tidemill.scheduler.keeper import PRUNE_SECONDS

NO_RETRY = RetryPolicy(max_retries=0)


async def failed_runs(mill: Mill, count: int) -> list[RunId]:
    worker = mill.worker()
    await worker.open()
    run_ids = [await mill.start(a_step("a", retry=NO_RETRY)) for _ in range(count)]
    for one in await worker.assignments(count):
        await worker.fail(one.token)
    for run_id in run_ids:
        await mill.ended(run_id)
    return run_ids


def bulk(**fields: object) -> BulkReplay:
    return BulkReplay(query=DeadQuery(namespace="default"), **fields)  # type: ignore[arg-type]


@on_a_mill
async def test_dead_letters_are_replayed_no_faster_than_the_rate(mill: Mill) -> None:
    run_ids = await failed_runs(mill, 4)
    began = mill.clock.monotonic()

    replays = dead_letters.replay_many(mill.store, mill.bus, mill.clock, bulk(rate=2.0))
    told = [one async for one in replays]

    assert {one.key.run_id for one in told} == set(run_ids)
    assert {one.error for one in told} == {None}
    assert 1.5 <= mill.clock.monotonic() - began < 2.5
    assert await mill.store.reader.dead_letters(DeadQuery(namespace="default")) == []


@on_a_mill
async def test_no_more_are_replayed_than_asked_for(mill: Mill) -> None:
    await failed_runs(mill, 3)

    replays = dead_letters.replay_many(mill.store, mill.bus, mill.clock, bulk(rate=99, limit=2))
    told = [one async for one in replays]

    assert len(told) == 2
    assert len(await mill.store.reader.dead_letters(DeadQuery(namespace="default"))) == 1


@on_a_mill
async def test_one_that_somebody_else_replayed_meanwhile_is_told_and_holds_nobody_up(
    mill: Mill,
) -> None:
    run_ids = await failed_runs(mill, 2)
    replays = dead_letters.replay_many(mill.store, mill.bus, mill.clock, bulk(rate=99))

    first = await anext(replays)
    (other,) = set(run_ids) - {first.key.run_id}
    await dead_letters.replay(mill.store, mill.bus, "default", TaskKey(other, 0))
    (second,) = [one async for one in replays]

    assert second.key.run_id == other
    assert isinstance(second.error, Conflict)


@on_a_mill
async def test_a_store_that_is_away_ends_a_bulk_replay(mill: Mill) -> None:
    await failed_runs(mill, 1)

    class Away:
        reader = mill.store.reader

        def transaction(self) -> object:
            raise Unavailable("away")

    with pytest.raises(Unavailable):
        async for _ in dead_letters.replay_many(Away(), mill.bus, mill.clock, bulk()):  # type: ignore[arg-type]
            pass


@on_a_mill
async def test_a_discarded_dead_letter_can_still_be_replayed_by_its_key(mill: Mill) -> None:
    (run_id,) = await failed_runs(mill, 1)
    await dead_letters.discard(mill.store, "default", TaskKey(run_id, 0))

    run = await dead_letters.replay(mill.store, mill.bus, "default", TaskKey(run_id, 0))

    assert (run.state, run.generation) == ("RUNNING", 2)


@on_a_mill
async def test_the_scheduler_forgets_keys_that_have_expired(mill: Mill) -> None:
    (run_id,) = await failed_runs(mill, 1)
    now = mill.clock.now()
    async with mill.store.transaction() as tx:
        keys = [a_start_key(key=f"k{place}", run_id=run_id, expires_at=now) for place in range(5)]
        await tx.starts.take_keys([*keys, a_start_key(key="new", expires_at=now + KEY_LIFE)])

    await mill.clock.sleep(PRUNE_SECONDS + 1)

    find = mill.store.reader.find_by_key
    assert [await find("default", RunKind.RUN, key.key) for key in keys] == [None] * 5
    assert await find("default", RunKind.RUN, "new") is not None
