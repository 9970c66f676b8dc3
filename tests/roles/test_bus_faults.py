"""Faults of the bus: whatever happens to messages costs time, and changes no ending."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from tests.contract.bus_stage import events
from tests.roles.mill import Mill, a_chain, a_step, on_a_mill
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import Fact, decode_facts
from tidemill.domain.identifiers import RunId
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.ports.bus import Event, Hint

SendHint = Callable[[Hint], Awaitable[None]]
HOUR = 3_600.0
QUARTER_OF_AN_HOUR = 900.0
POISON = b'[{"type":"task.ready","namespace":"default","run_id":7,"\xff'


class BrokenBus(MemoryBus):
    """A bus that is down until it is mended, and keeps what was published afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.down = True
        self.heard: list[Event] = []

    async def publish(self, events: Sequence[Event]) -> None:
        self._check()
        self.heard += events

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[Hint]]:
        self._check()
        async with super().hints() as hints:
            yield hints

    def _check(self) -> None:
        if self.down:
            raise Unavailable("the bus is down")


def intercept(mill: Mill, fate: Callable[[SendHint, Hint], Awaitable[None]]) -> SendHint:
    """Let a fate befall every hint of the mill from now on; return the honest way."""
    honest = mill.bus.send_hint

    async def send_hint(hint: Hint) -> None:
        await fate(honest, hint)

    mill.bus.send_hint = send_hint  # type: ignore[method-assign]
    return honest


def a_relay(mill: Mill, bus: MemoryBus) -> Relay:
    return Relay(name="r", store=mill.store, bus=bus, clock=mill.clock, config=RelayConfig())


async def run_a_chain(mill: Mill) -> RunId:
    """Three tasks in a row, by a worker of a second scheduler, which has not seen the start."""
    second = mill.a_scheduler("second")
    duties = asyncio.create_task(second.run())
    worker = mill.worker(second)
    await worker.open()
    run_id = await mill.start(*a_chain(3))
    for _ in range(3):
        await worker.succeed((await worker.assignment()).token)
    await mill.ended(run_id)
    worker.leave()
    duties.cancel()
    return run_id


async def facts(mill: Mill) -> list[Fact]:
    """All that has happened, from the outbox."""
    async with mill.store.transaction() as tx:
        await tx.outbox.stamp(1_000)
        rows = await tx.outbox.read(0, 1_000)
    return [fact for row in rows for fact in decode_facts(row.facts)]


async def endings(mill: Mill) -> list[str | None]:
    return [fact.task for fact in await facts(mill) if fact.type == "task.completed"]


@on_a_mill
async def test_fault_24_with_every_message_lost_the_run_ends_all_the_same(mill: Mill) -> None:
    async def lose(_send: SendHint, _hint: Hint) -> None:
        pass

    intercept(mill, lose)

    run_id = await run_a_chain(mill)

    assert await mill.states(run_id) == ["SUCCEEDED"] * 3


@on_a_mill
async def test_fault_25_messages_doubled_a_hundredfold_double_no_outcome(mill: Mill) -> None:
    async def double(send: SendHint, hint: Hint) -> None:
        for _ in range(100):
            await send(hint)

    intercept(mill, double)

    run_id = await run_a_chain(mill)

    assert await mill.states(run_id) == ["SUCCEEDED"] * 3
    assert await endings(mill) == ["t0", "t1", "t2"]


@on_a_mill
async def test_fault_26_messages_out_of_order_bring_no_task_out_of_order(mill: Mill) -> None:
    held: list[Hint] = []

    async def hold_three_and_turn_them_round(send: SendHint, hint: Hint) -> None:
        held.append(hint)
        while len(held) >= 3:
            await send(held.pop())

    intercept(mill, hold_three_and_turn_them_round)

    await run_a_chain(mill)

    assert await endings(mill) == ["t0", "t1", "t2"]


@on_a_mill
async def test_fault_27_a_message_an_hour_late_changes_nothing(mill: Mill) -> None:
    late: list[Hint] = []

    async def delay(_send: SendHint, hint: Hint) -> None:
        late.append(hint)

    honest = intercept(mill, delay)
    run_id = await run_a_chain(mill)
    before = await mill.run(run_id), await facts(mill)

    await mill.clock.sleep(HOUR)
    for hint in late:
        await honest(hint)
    await mill.clock.sleep(5)

    assert late
    assert (await mill.run(run_id), await facts(mill)) == before


@on_a_mill
async def test_fault_28_a_row_that_cannot_be_read_is_kept_byte_for_byte(mill: Mill) -> None:
    async with mill.store.transaction() as tx:
        await tx.outbox.append(POISON)
    run_id = await mill.start(a_step("a"))

    async with mill.bus.subscribe() as heard:
        await a_relay(mill, mill.bus).step()

        assert (await anext(heard)).fact.run_id == run_id
    (message,) = mill.bus.aside
    assert message.value == POISON
    assert message.headers["source"] == "outbox row 1"
    assert message.headers["reason"]


@on_a_mill
async def test_fault_28_an_event_that_the_bus_refuses_holds_no_other_up(mill: Mill) -> None:
    class Picky(BrokenBus):
        async def publish(self, events: Sequence[Event]) -> None:
            if any(event.fact.type == "task.ready" for event in events):
                raise ValueError("too large")
            self.heard += events

    bus = Picky()
    await mill.start(a_step("a"))

    await a_relay(mill, bus).step()

    assert [event.fact.type.value for event in bus.heard] == ["workflow.started"]
    assert [message.headers["reason"] for message in bus.aside] == ["too large"]


def test_fault_29_a_bus_down_from_the_start_costs_time_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @on_a_mill
    async def scenario(mill: Mill) -> None:
        bus = BrokenBus()
        relaying = asyncio.create_task(a_relay(mill, bus).run())
        run_id = await run_a_chain(mill)
        await mill.clock.sleep(QUARTER_OF_AN_HOUR)
        assert (await mill.run(run_id)).state == "SUCCEEDED"
        assert bus.heard == []

        bus.down = False
        await mill.clock.sleep(3)

        assert [event.fact for event in bus.heard] == await facts(mill)
        relaying.cancel()

    with caplog.at_level(logging.INFO):
        scenario()
    lost, back = (line for line in caplog.messages if "bus" in line)
    assert lost == "the bus is out of reach: the bus is down"
    assert back.startswith("the bus is back after ")


@on_a_mill
async def test_fault_29_a_relay_without_its_bus_says_so_in_health(mill: Mill) -> None:
    bus = BrokenBus()
    relay = a_relay(mill, bus)
    relaying = asyncio.create_task(relay.run())
    await mill.start(a_step("a"))
    await mill.clock.sleep(60)

    assert relay.health() == ["the bus is out of reach for 60 s: the bus is down"]
    assert relay.state.leading
    assert relay.lag() >= 1

    bus.down = False
    await mill.clock.sleep(3)
    assert relay.health() == []
    assert relay.lag() == 0
    relaying.cancel()


@on_a_mill
async def test_fault_29_a_scheduler_works_on_while_the_bus_comes_and_goes(mill: Mill) -> None:
    bus = BrokenBus()
    mill.bus = bus
    scheduler = mill.a_scheduler("third")
    duties = asyncio.create_task(scheduler.run())
    worker = mill.worker(scheduler)
    await worker.open()

    for down in (True, False, True):
        bus.down = down
        run_id = await mill.start(a_step("a"))
        await worker.succeed((await worker.assignment()).token)
        assert (await mill.ended(run_id)).state == "SUCCEEDED"
    duties.cancel()


@on_a_mill
async def test_fault_30_a_slow_subscriber_costs_bounded_memory_and_holds_nobody_up(
    mill: Mill,
) -> None:
    bus, sent = MemoryBus(queued_max=100), events(1_000)
    async with bus.subscribe() as slow, bus.subscribe() as quick:
        for event in sent:
            await bus.publish([event])
            assert await anext(quick) == event

        assert [await anext(slow) for _ in range(100)] == sent[-100:]


@on_a_mill
async def test_fault_30_a_relay_far_behind_is_shown_and_catches_up_in_bounded_batches(
    mill: Mill,
) -> None:
    bus, sizes = BrokenBus(), list[int]()
    bus.down = False
    honest = bus.publish

    async def publish(events: Sequence[Event]) -> None:
        sizes.append(len(events))
        await honest(events)

    bus.publish = publish  # type: ignore[method-assign]
    config = RelayConfig(rows_max=10, rows_behind_max=20)
    relay = Relay(name="r", store=mill.store, bus=bus, clock=mill.clock, config=config)
    for _ in range(35):
        await mill.start(a_step("a"))

    await relay.step()
    assert relay.health() == ["the relay is 25 outbox rows behind"]

    while await relay.step():
        pass
    assert max(sizes) <= 20
    assert relay.health() == []


@on_a_mill
async def test_fault_33_a_bus_that_forgets_what_it_took_changes_no_ending(mill: Mill) -> None:
    class Forgetful(BrokenBus):
        async def publish(self, events: Sequence[Event]) -> None:
            pass

    relaying = asyncio.create_task(a_relay(mill, Forgetful()).run())

    run_id = await run_a_chain(mill)

    assert await mill.states(run_id) == ["SUCCEEDED"] * 3
    relaying.cancel()


@on_a_mill
async def test_fault_34_a_subscriber_hears_nothing_of_another_namespace(mill: Mill) -> None:
    async with mill.bus.subscribe("elsewhere") as heard:
        relaying = asyncio.create_task(a_relay(mill, mill.bus).run())
        await run_a_chain(mill)
        await mill.clock.sleep(1)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await anext(heard)
    relaying.cancel()
