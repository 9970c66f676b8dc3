"""Following the outbox: nothing is missed, nobody who is slow costs anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.builders import a_run_id
from tidemill.api.following import Follower, Following, FollowingConfig, Gap, TooSlow
from tidemill.api.recent_rows import Choice, Place, Told
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import Fact, FactType, encode_facts
from tidemill.domain.identifiers import RunId
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.ports.store import Store
from tidemill.protocol.cloud_events import decode_event
from tidemill.runtime.system import SystemClock

RUN = a_run_id()
ALL = Choice(namespace="default")


@pytest.fixture(params=["sqlite_store", "postgres_store"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each store."""
    chosen: Store = request.getfixturevalue(request.param)
    return chosen


def a_fact(run_id: RunId = RUN, **fields: object) -> Fact:
    """A fact about a task."""
    plain: dict[str, object] = {
        "type": FactType.TASK_READY,
        "namespace": "default",
        "run_id": run_id,
        "workflow": "orders",
        "at": 1,
        "state": "READY",
        "task": "ship",
        "position": 0,
    }
    return Fact(**(plain | fields))  # type: ignore[arg-type]


async def tell(store: Store, *facts: Fact) -> None:
    """Commit facts as one row, and let the relay give it its position."""
    async with store.transaction() as tx:
        await tx.outbox.append(encode_facts(facts))
    await stamp(store)


async def stamp(store: Store) -> None:
    """One step of the relay."""
    relay = Relay(
        name="relay", store=store, bus=MemoryBus(), clock=SystemClock(), config=RelayConfig()
    )
    await relay.step()


def a_following(store: Store, bus: MemoryBus | None = None, **config: float) -> Following:
    """A reader of the outbox that is stepped by hand."""
    return Following(
        store=store,
        bus=bus or MemoryBus(),
        clock=SystemClock(),
        config=FollowingConfig(**config),  # type: ignore[arg-type]
    )


async def taken(follower: Follower) -> list[str]:
    """Ids of what a follower gets, until there is nothing more."""
    found: list[str] = []
    while told := await follower.take(0):
        found += [str(one.place) for one in told if isinstance(one, Told)]
    return found


@asynccontextmanager
async def running(following: Following) -> AsyncIterator[None]:
    """The reader at work."""
    task = asyncio.create_task(following.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_follower_gets_what_happens_from_now_on(store: Store) -> None:
    await tell(store, a_fact())
    following = a_following(store)
    await following.step()

    async with following.follow(ALL, None) as follower:
        await tell(store, a_fact(), a_fact(task="bill"))
        await following.step()

        assert await taken(follower) == ["2.0", "2.1"]


async def test_a_follower_resumes_in_the_middle_of_a_transaction(store: Store) -> None:
    await tell(store, a_fact(), a_fact(), a_fact())
    await tell(store, a_fact())
    following = a_following(store)
    await following.step()

    async with following.follow(ALL, Place(1, 1)) as follower:
        await follower.take(0)

    async with following.follow(ALL, Place(1, 1)) as follower:
        assert await taken(follower) == ["1.2", "2.0"]


async def test_what_is_in_memory_is_not_read_again(store: Store) -> None:
    following = a_following(store)
    await following.step()
    await tell(store, a_fact())
    await tell(store, a_fact())
    await following.step()

    async with following.follow(ALL, Place(1)) as follower:
        assert await taken(follower) == ["2.0"]


async def test_only_facts_of_the_namespace_and_the_choice_are_told(store: Store) -> None:
    following = a_following(store)
    await following.step()
    other = a_run_id()
    await tell(
        store,
        a_fact(namespace="secret"),
        a_fact(other),
        a_fact(type=FactType.TASK_FAILED),
        a_fact(workflow="bills"),
    )
    await following.step()
    choices = {
        "run": Choice(namespace="default", run_id=other),
        "types": Choice(namespace="default", types=frozenset({FactType.TASK_FAILED})),
        "workflow": Choice(namespace="default", workflow="bills"),
        "elsewhere": Choice(namespace="empty"),
    }

    found = {}
    for name, choice in choices.items():
        async with following.follow(choice, Place(0)) as follower:
            found[name] = await taken(follower)

    assert found == {"run": ["1.1"], "types": ["1.2"], "workflow": ["1.3"], "elsewhere": []}


async def test_what_is_told_is_a_cloud_event(store: Store) -> None:
    following = a_following(store)
    await tell(store, a_fact(task="ship"))
    await following.step()

    async with following.follow(ALL, Place(0)) as follower:
        (told,) = await follower.take(0)

    assert isinstance(told, Told)
    event = decode_event(told.data)
    assert event is not None
    assert (event.position, event.fact.task) == (1, "ship")


async def test_a_hole_in_what_is_kept_is_told(store: Store) -> None:
    for _ in range(3):
        await tell(store, a_fact())
    async with store.transaction() as tx:
        await tx.outbox.move_cursor("bus", 2)
        await tx.outbox.prune(await tx.now() + 1_000_000, 2)
    following = a_following(store)
    await following.step()

    async with following.follow(ALL, Place(1)) as follower:
        told = await follower.take(0)

    assert told[0] == Gap(1, 3)
    assert [str(one.place) for one in told[1:] if isinstance(one, Told)] == ["3.0"]


async def test_a_place_of_another_database_is_told_as_a_gap(store: Store) -> None:
    following = a_following(store)
    await tell(store, a_fact())
    await following.step()

    async with following.follow(ALL, Place(900)) as follower:
        told = await follower.take(0)
        await tell(store, a_fact())
        await following.step()

        assert told == [Gap(900, 2)]
        assert await taken(follower) == ["2.0"]


async def test_a_place_ahead_of_this_process_is_waited_for(store: Store) -> None:
    following = a_following(store)
    await following.step()
    await tell(store, a_fact())
    await tell(store, a_fact())

    async with following.follow(ALL, Place(1, 0)) as follower:
        assert await follower.take(0) == []
        await following.step()

        assert await taken(follower) == ["2.0"]


async def test_a_slow_follower_is_cut_off_and_resumes_without_loss(sqlite_store: Store) -> None:
    following = a_following(sqlite_store, facts_max=4)
    await following.step()

    async with following.follow(ALL, None) as follower:
        for _ in range(10):
            await tell(sqlite_store, a_fact())
        await following.step()

        with pytest.raises(TooSlow):
            await follower.take(0)
    async with following.follow(ALL, follower.seen) as follower:
        assert len(await taken(follower)) == 10


async def test_a_quiet_follower_does_not_fall_behind(sqlite_store: Store) -> None:
    following = a_following(sqlite_store, facts_max=4)
    await following.step()
    mine, other = a_run_id(), a_run_id()

    async with following.follow(Choice(namespace="default", run_id=mine), None) as follower:
        for _ in range(10):
            await tell(sqlite_store, a_fact(other))
        await tell(sqlite_store, a_fact(mine))
        await following.step()

        assert await taken(follower) == ["11.0"]


async def test_an_event_of_the_bus_wakes_the_reader(sqlite_store: Store) -> None:
    bus = MemoryBus()
    following = a_following(sqlite_store, bus, poll_seconds=30.0)
    relay = Relay(
        name="relay", store=sqlite_store, bus=bus, clock=SystemClock(), config=RelayConfig()
    )

    async with running(following), following.follow(ALL, None) as follower:
        await follower.take(0.1)
        async with sqlite_store.transaction() as tx:
            await tx.outbox.append(encode_facts([a_fact()]))
        await relay.step()

        assert len(await follower.take(5)) == 1


async def test_a_relay_of_the_same_process_wakes_the_reader_without_a_bus(
    sqlite_store: Store,
) -> None:
    bus = MemoryBus()
    following = a_following(sqlite_store, bus, poll_seconds=30.0)
    relay = Relay(
        name="relay",
        store=sqlite_store,
        bus=bus,
        clock=SystemClock(),
        config=RelayConfig(),
        is_heard=bus.is_heard,
    )
    await relay.step()
    following.settle_beside(relay)
    relay.settle_beside(following)

    async with running(following), following.follow(ALL, None) as follower:
        await follower.take(0.1)
        async with sqlite_store.transaction() as tx:
            await tx.outbox.append(encode_facts([a_fact()]))
        await relay.step()

        assert len(await follower.take(5)) == 1
        assert not bus.is_heard()


async def test_there_is_a_bound_on_followers(sqlite_store: Store) -> None:
    following = a_following(sqlite_store, followers_max=1)
    await following.step()

    async with following.follow(ALL, None):
        with pytest.raises(Unavailable, match="too many streams"):
            await following.check()


async def test_a_row_that_cannot_be_read_is_passed_over(sqlite_store: Store) -> None:
    following = a_following(sqlite_store)
    await following.step()
    async with sqlite_store.transaction() as tx:
        await tx.outbox.append(b"[{")
    await tell(sqlite_store, a_fact())
    await following.step()

    async with following.follow(ALL, Place(0)) as follower:
        assert await taken(follower) == ["2.0"]


async def test_health_tells_when_nobody_relays(sqlite_store: Store) -> None:
    following = a_following(sqlite_store, stalled_seconds=0.0)
    await following.step()

    following.suspect()

    assert following.health() == [
        "no notifier relays facts: start `tidemill notifier` for live events"
    ]
