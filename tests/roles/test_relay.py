"""The relay: facts reach the bus in order, at least once, by one leader at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.roles.mill import Mill, a_chain, a_step, on_a_mill
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.notifier.relay import CURSOR, Relay, RelayConfig
from tidemill.ports.bus import Event, Hint

CONFIG = RelayConfig(keep_seconds=100, prune_seconds=60)
IDLE_STATEMENTS_PER_SECOND_MAX = 5


class Listener(MemoryBus):
    """A bus that keeps what was published, and can be down."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Event] = []
        self.down = False

    async def publish(self, events: Sequence[Event]) -> None:
        if self.down:
            raise Unavailable("the bus is down")
        self.heard += events


def a_relay(mill: Mill, bus: MemoryBus, name: str = "relay-1") -> Relay:
    return Relay(name=name, store=mill.store, bus=bus, clock=mill.clock, config=CONFIG)


def a_quiet_relay(mill: Mill, bus: MemoryBus) -> Relay:
    """As in a process whose bus is its own memory: it knows whether anybody listens."""
    return Relay(
        name="relay-1",
        store=mill.store,
        bus=bus,
        clock=mill.clock,
        config=CONFIG,
        is_heard=bus.is_heard,
    )


class Reader:
    """A neighbour of the relay."""

    def __init__(self) -> None:
        self.is_wanted = False
        self.woken = asyncio.Event()

    def wake(self) -> None:
        self.woken.set()


@on_a_mill
async def test_facts_of_a_run_arrive_in_the_order_in_which_they_follow(mill: Mill) -> None:
    bus, worker = Listener(), mill.worker()
    await worker.open()
    run_id = await mill.start(*a_chain(2))
    for _ in range(2):
        await worker.succeed((await worker.assignment()).token)
    await mill.ended(run_id)

    await a_relay(mill, bus).step()

    assert [event.fact.type.value for event in bus.heard] == [
        "workflow.started",
        "task.ready",
        "task.started",
        "task.completed",
        "task.ready",
        "task.started",
        "task.completed",
        "workflow.completed",
    ]


@on_a_mill
async def test_what_was_published_is_not_published_again(mill: Mill) -> None:
    bus = Listener()
    relay = a_relay(mill, bus)
    await mill.start(a_step("a"))

    await relay.step()
    await relay.step()

    assert len({event.id for event in bus.heard}) == len(bus.heard)


@on_a_mill
async def test_a_bus_that_is_down_delays_facts_and_loses_none(mill: Mill) -> None:
    bus = Listener()
    bus.down = True
    duties = asyncio.create_task(a_relay(mill, bus).run())
    run_id = await mill.start(a_step("a"))
    await mill.clock.sleep(5)
    assert bus.heard == []

    bus.down = False
    await mill.clock.sleep(3)

    assert {event.fact.run_id for event in bus.heard} == {run_id}
    duties.cancel()


@on_a_mill
async def test_a_crash_after_publishing_publishes_the_same_ids_again(mill: Mill) -> None:
    bus = Listener()
    await mill.start(a_step("a"))
    crashed = a_relay(mill, bus)
    _, rows = await crashed._take_rows(False, 0)  # and then it dies before it moves its cursor
    assert rows

    await a_relay(mill, bus).step()
    first = [event.id for event in bus.heard]

    assert first
    assert [event.id for event in bus.heard if event.position == rows[0].position] == first


@on_a_mill
async def test_what_nobody_hears_is_stamped_and_passed_over(mill: Mill) -> None:
    bus = Listener()
    relay = a_quiet_relay(mill, bus)
    await mill.start(a_step("a"))

    assert await relay.step() > 0

    async with mill.store.transaction() as tx:
        rows = await tx.outbox.read(0, 10)
        assert await tx.outbox.cursor(CURSOR) == rows[-1].position
    assert bus.heard == []
    assert relay.lag() == 0


@on_a_mill
async def test_who_comes_to_listen_hears_what_happens_from_then_on(mill: Mill) -> None:
    bus = MemoryBus()
    relay = a_quiet_relay(mill, bus)
    await mill.start(a_step("a"))
    await relay.step()

    async with bus.subscribe() as events:
        run_id = await mill.start(a_step("b"))
        await relay.step()

        assert (await anext(events)).fact.run_id == run_id


@on_a_mill
async def test_a_neighbour_is_woken_and_makes_the_relay_hurry(mill: Mill) -> None:
    relay, neighbour = a_quiet_relay(mill, mill.bus), Reader()
    relay.settle_beside(neighbour)
    duties = asyncio.create_task(relay.run())
    await mill.clock.sleep(1)
    begun = mill.clock.monotonic()

    neighbour.is_wanted = True
    relay.hurry()
    await mill.start(a_step("a"))
    await neighbour.woken.wait()

    assert mill.clock.monotonic() - begun < CONFIG.calm_seconds
    duties.cancel()


@on_a_mill
async def test_an_idle_leader_asks_its_store_less_than_five_times_a_second(mill: Mill) -> None:
    heard: list[str] = []
    relay = asyncio.create_task(a_relay(mill, Listener()).run())
    await mill.clock.sleep(1)
    mill.store._writer.raw.set_trace_callback(heard.append)

    await mill.clock.sleep(60)

    mill.store._writer.raw.set_trace_callback(None)
    asked = [text for text in heard if "outbox" in text or "leader" in text]
    assert 0 < len(asked) < IDLE_STATEMENTS_PER_SECOND_MAX * 60
    relay.cancel()


@on_a_mill
async def test_a_second_relay_waits_and_takes_over_within_two_seconds(mill: Mill) -> None:
    bus = Listener()
    await a_relay(mill, bus, "first").step()
    second = a_relay(mill, bus, "second")
    await mill.start(a_step("a"))

    assert await second.step() == 0
    await mill.clock.sleep(2)

    assert await second.step() > 0


@on_a_mill
async def test_a_relay_that_resigns_lets_the_next_one_lead_at_once(mill: Mill) -> None:
    bus = Listener()
    first, second = a_relay(mill, bus, "first"), a_relay(mill, bus, "second")
    await first.step()
    await mill.start(a_step("a"))

    await first.resign()

    assert await second.step() > 0


@on_a_mill
async def test_old_rows_leave_behind_every_cursor(mill: Mill) -> None:
    bus = Listener()
    relay = a_relay(mill, bus)
    await mill.start(a_step("a"))
    await relay.step()

    await mill.clock.sleep(CONFIG.keep_seconds + CONFIG.prune_seconds)
    await relay.step()

    async with mill.store.transaction() as tx:
        assert await tx.outbox.read(0, 10) == []


@on_a_mill
async def test_a_slow_subscriber_loses_the_oldest_and_hints_reach_everyone(mill: Mill) -> None:
    bus = MemoryBus(queued_max=2)
    async with bus.hints() as mine, bus.hints() as yours:
        for run_id in (mill.entropy.run_id() for _ in range(3)):
            await bus.send_hint(Hint(runs=(run_id,)))

        assert (await anext(mine)).runs == (await anext(yours)).runs
        assert (await anext(mine)).runs == (run_id,)


@on_a_mill
async def test_a_row_that_cannot_be_read_is_passed_over(mill: Mill) -> None:
    bus = Listener()
    async with mill.store.transaction() as tx:
        await tx.outbox.append(b'[{"type":"from.a.later.release"}]')
    run_id = await mill.start(a_step("a"))

    await a_relay(mill, bus).step()

    assert {event.fact.run_id for event in bus.heard} == {run_id}
