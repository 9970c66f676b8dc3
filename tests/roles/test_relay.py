"""The relay: facts reach the bus in order, at least once, by one leader at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.roles.mill import Mill, a_chain, a_step, on_a_mill
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.ports.bus import Event, Hint

CONFIG = RelayConfig(keep_seconds=100, prune_seconds=60)


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
    rows = await crashed._stamped_rows()  # and then it dies before it moves its cursor
    assert rows

    await a_relay(mill, bus).step()
    first = [event.id for event in bus.heard]

    assert first
    assert [event.id for event in bus.heard if event.position == rows[0].position] == first


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
