"""The contract of the bus, over every bus, on real servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from tests.builders import a_run_id
from tests.contract.bus_stage import (
    Wire,
    an_event,
    closing,
    events,
    first,
    kafka_wire,
    memory_bus,
    memory_wire,
    postgres_wire,
    redis_wire,
    until,
)
from tidemill.buses.broker_bus import BrokerBus
from tidemill.buses.postgres import PostgresBus
from tidemill.buses.redis import RedisBroker
from tidemill.domain.errors import InvalidInput, Unavailable
from tidemill.domain.identifiers import Lane
from tidemill.ports.broker import Message
from tidemill.ports.bus import Bus, Hint

NOBODY = "127.0.0.1:1"
"""Where nothing listens."""


@pytest.fixture(params=["memory", "postgres", "redis", "kafka"])
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Wire]:
    """Each bus that puts events into bytes."""
    async with closing(_make_wire(request)) as wire:
        yield wire


def _make_wire(request: pytest.FixtureRequest) -> Wire:
    match request.param:
        case "memory":
            return memory_wire()
        case "postgres":
            return postgres_wire(request.getfixturevalue("postgres_dsn"))
        case "redis":
            return redis_wire(request.getfixturevalue("redis_url"))
        case _:
            return kafka_wire(request.getfixturevalue("kafka_url"))


@pytest.fixture(params=["values", "memory", "postgres", "redis", "kafka"])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    """Each bus."""
    bus = memory_bus() if request.param == "values" else _make_wire(request).bus
    async with closing(bus):
        yield bus


@pytest.fixture(params=["postgres", "redis", "kafka"])
async def unreachable(request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    """Each bus that has a server, without it."""
    match request.param:
        case "postgres":
            bus: Bus = PostgresBus(f"postgresql://tidemill:tell-nobody@{NOBODY}/mill")
        case "redis":
            bus = BrokerBus(RedisBroker(f"redis://:tell-nobody@{NOBODY}/0"))
        case _:
            bus = kafka_wire(f"kafka://tidemill:tell-nobody@{NOBODY}").bus
    async with closing(bus):
        yield bus


# Events


async def test_an_event_arrives_as_it_was_published(bus: Bus) -> None:
    event = an_event(reason="exhausted", error="Überlauf\n\x00 \U0001f30a", epoch=3, attempt=2)
    async with bus.subscribe() as heard:
        await bus.publish([event])

        assert await first(heard, 1) == [event]


async def test_events_of_a_run_arrive_in_order(bus: Bus) -> None:
    sent = events(600)
    async with bus.subscribe() as heard:
        for begin in range(0, 600, 100):
            await bus.publish(sent[begin : begin + 100])

        assert await first(heard, 600) == sent


async def test_every_subscriber_sees_every_event(bus: Bus) -> None:
    sent = events(3)
    async with bus.subscribe() as mine, bus.subscribe() as yours:
        await bus.publish(sent)

        assert await first(mine, 3) == await first(yours, 3) == sent


async def test_a_subscriber_sees_nothing_from_before_its_time(bus: Bus) -> None:
    await bus.publish([an_event(1)])
    async with bus.subscribe() as heard:
        await bus.publish([an_event(2)])

        assert await first(heard, 1) == [an_event(2)]


async def test_a_large_event_arrives_whole_between_small_ones(bus: Bus) -> None:
    sent = [an_event(1), an_event(2, error="ä" * 60_000), an_event(3)]
    async with bus.subscribe() as heard:
        await bus.publish(sent)

        assert await first(heard, 3) == sent


async def test_publishing_nothing_is_allowed(bus: Bus) -> None:
    await bus.publish([])


async def test_fault_34_a_subscriber_of_a_namespace_sees_no_other(bus: Bus) -> None:
    mine = an_event(2, namespace="mine")
    async with bus.subscribe("mine") as heard:
        await bus.publish([an_event(1, namespace="theirs"), mine, an_event(3)])
        await bus.publish([an_event(4, namespace="mine")])

        assert await first(heard, 2) == [mine, an_event(4, namespace="mine")]


# Hints


async def test_a_hint_reaches_everyone_who_listens(bus: Bus) -> None:
    hint = Hint(runs=(a_run_id(),), lanes=(Lane("default", "q?zone=eu", 5),))
    async with bus.hints() as mine, bus.hints() as yours:
        await bus.send_hint(hint)

        assert await first(mine, 1) == await first(yours, 1) == [hint]


async def test_an_empty_hint_wakes_too(bus: Bus) -> None:
    async with bus.hints() as heard:
        await bus.send_hint(Hint())

        assert await first(heard, 1) == [Hint()]


async def test_no_run_of_a_flood_of_hints_is_forgotten(bus: Bus) -> None:
    runs = [a_run_id() for _ in range(1_500)]
    async with bus.hints() as heard:
        for run_id in runs:
            await bus.send_hint(Hint(runs=(run_id,)))
        seen = await until(heard, lambda hints: sum(len(hint.runs) for hint in hints) >= 1_500)

    assert sorted(run_id for hint in seen for run_id in hint.runs) == runs


# What nobody can read


async def test_what_is_set_aside_keeps_its_bytes(bus: Bus) -> None:
    poison = Message(value=b"\x00\xff{", key="k", headers={"source": "outbox", "reason": "ä"})
    async with bus.set_aside_messages() as dead:
        await bus.set_aside(poison)

        assert await first(dead, 1) == [poison]


async def test_fault_28_a_poison_event_is_set_aside_and_the_next_one_arrives(wire: Wire) -> None:
    bus = wire.bus
    async with bus.set_aside_messages() as dead, bus.subscribe() as heard:
        await wire.inject("events", b'{"specversion": "1.0"')
        await bus.publish([an_event()])

        assert await first(heard, 1) == [an_event()]
        (poison,) = await first(dead, 1)
    assert poison.value == b'{"specversion": "1.0"'
    assert poison.headers["source"] == "events"
    assert "not an event" in poison.headers["reason"]


async def test_fault_28_a_poison_hint_is_set_aside_and_the_next_one_arrives(wire: Wire) -> None:
    bus, hint = wire.bus, Hint(runs=(a_run_id(),))
    async with bus.set_aside_messages() as dead, bus.hints() as heard:
        await wire.inject("hints", b"poison")
        await bus.send_hint(hint)

        assert await first(heard, 1) == [hint]
        assert [message.value for message in await first(dead, 1)] == [b"poison"]


async def test_an_event_of_a_later_release_is_passed_over(wire: Wire) -> None:
    strange = b'{"specversion":"1.0","id":"1","source":"/x","type":"tidemill.task.dreamt.v1"}'
    async with wire.bus.subscribe() as heard:
        await wire.inject("events", strange)
        await wire.bus.publish([an_event()])

        assert await first(heard, 1) == [an_event()]


# Losses


async def test_a_bus_out_of_reach_refuses_events_without_telling_the_password(
    unreachable: Bus,
) -> None:
    with pytest.raises(Unavailable) as refused:
        await unreachable.publish([an_event()])

    assert "tell-nobody" not in str(refused.value)


async def test_a_bus_out_of_reach_refuses_subscribers(unreachable: Bus) -> None:
    with pytest.raises(Unavailable):
        async with unreachable.subscribe() as heard:
            await first(heard, 1)


async def test_a_bus_out_of_reach_swallows_hints_at_once(
    unreachable: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(20):
            for _ in range(50_000):  # a connection that is refused would take a millisecond
                await unreachable.send_hint(Hint(runs=(a_run_id(),)))

    assert "tell-nobody" not in caplog.text


async def test_a_bus_can_be_closed_twice(bus: Bus) -> None:
    await bus.publish([an_event()])

    await bus.close()
    await bus.close()


@pytest.mark.parametrize(
    "url",
    [
        "redis://host/0?prefix=a b",
        "redis://host/0?kept=none",
        "redis://host/prefix",
        "redis://host/0?nosuch=1",
        "redis://host/0?ssl_ca_certs=ca.pem",
        "redis://host:port/0",
        "redis://:tell-nobody@host/0?socket_timeout=tell-nobody",
        "http://host",
    ],
)
def test_a_wrong_address_of_redis_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        RedisBroker(url)

    assert "tell-nobody" not in str(refused.value)
