"""Two relays on a real PostgreSQL: one leads, and the other takes over when it dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count

import pytest

from tests.contract.bus_stage import an_event
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import encode_facts
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.ports.bus import Event
from tidemill.runtime.system import SystemClock
from tidemill.stores.postgres.store import PostgresStore

CLOCK = SystemClock()
TAKEOVER_SECONDS = 2.0
CONFIG = RelayConfig()
_schemas = count(1)


class Recorder(MemoryBus):
    """Keeps what one relay published, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Event] = []
        self.at: list[float] = []
        self.first = asyncio.Event()
        self.down = False

    async def publish(self, events: Sequence[Event]) -> None:
        if self.down:
            raise Unavailable("the bus is down")
        self.heard += events
        self.at += [CLOCK.monotonic()] * len(events)
        self.first.set()

    @property
    def positions(self) -> list[int | None]:
        """Which facts came, by the number that the writer gave them."""
        return [event.fact.position for event in self.heard]


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_dsn, schema=f"takeover_{next(_schemas)}")
    await store.migrate()
    yield store
    await store.close()


def start(
    store: PostgresStore, bus: Recorder, name: str, config: RelayConfig = CONFIG
) -> asyncio.Task[None]:
    relay = Relay(name=name, store=store, bus=bus, clock=CLOCK, config=config)
    return asyncio.create_task(relay.run())


async def write(store: PostgresStore, first: int, last: int) -> None:
    """Facts of one run, a transaction each, as fast as a small mill."""
    for number in range(first, last + 1):
        async with store.transaction() as tx:
            await tx.outbox.append(encode_facts([an_event(number).fact]))
        await CLOCK.sleep(0.01)


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.alone
async def test_a_second_relay_takes_over_within_two_seconds_of_a_kill(
    store: PostgresStore,
) -> None:
    mine, yours = Recorder(), Recorder()
    first = start(store, mine, "first")
    await write(store, 1, 20)
    await mine.first.wait()
    second = start(store, yours, "second")
    writing = asyncio.create_task(write(store, 21, 200))
    await CLOCK.sleep(0.3)
    assert yours.heard == []

    await end(first)  # no resigning: as after kill -9
    killed_at = CLOCK.monotonic()
    async with asyncio.timeout(TAKEOVER_SECONDS + CONFIG.poll_seconds):
        await yours.first.wait()
    await writing
    await CLOCK.sleep(2 * CONFIG.poll_seconds)
    await end(second)

    assert yours.at[0] - killed_at <= TAKEOVER_SECONDS + CONFIG.poll_seconds
    heard = mine.positions + yours.positions
    assert list(dict.fromkeys(heard)) == list(range(1, 201))  # all, in order; doubles allowed


async def test_a_relay_that_leaves_in_order_is_followed_at_once(store: PostgresStore) -> None:
    mine, yours = Recorder(), Recorder()
    config = RelayConfig(lead_seconds=60)
    leaving = Relay(name="first", store=store, bus=mine, clock=CLOCK, config=config)
    await write(store, 1, 1)
    await leaving.step()
    second = start(store, yours, "second", config)
    await write(store, 2, 2)

    await leaving.resign()

    async with asyncio.timeout(20):
        await yours.first.wait()
    await end(second)


async def test_a_leader_whose_bus_is_down_gives_way_to_one_whose_bus_is_up(
    store: PostgresStore,
) -> None:
    mine, yours = Recorder(), Recorder()
    mine.down = True
    await write(store, 1, 3)
    first = start(store, mine, "first")
    await CLOCK.sleep(0.2)

    second = start(store, yours, "second")

    async with asyncio.timeout(10):
        await yours.first.wait()
    await end(first, second)
    assert yours.positions == [1, 2, 3]
