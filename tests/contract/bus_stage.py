"""Buses of every kind for the contract, each test on topics of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import asyncpg

from tests.builders import NOON
from tidemill.buses.broker_bus import BrokerBus
from tidemill.buses.kafka import KafkaBroker
from tidemill.buses.memory import MemoryBroker, MemoryBus
from tidemill.buses.postgres import PostgresBus, channel_name
from tidemill.buses.redis import RedisBroker
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import RunId
from tidemill.ports.broker import Broker, Message
from tidemill.ports.bus import Bus, Event

SECONDS_MAX = 20.0
T = TypeVar("T")
_numbers = count(1)


@dataclass(frozen=True)
class Wire:
    """A bus, and a way to put any bytes at all on one of its topics."""

    bus: Bus
    inject: Callable[[str, bytes], Awaitable[None]]


def a_prefix() -> str:
    """A name that no other test has."""
    return f"bus{next(_numbers)}"


Closable = TypeVar("Closable", bound=Bus | Wire)


@asynccontextmanager
async def closing(bus: Closable) -> AsyncIterator[Closable]:
    """Close a bus or a wire behind a test."""
    try:
        yield bus
    finally:
        await (bus.bus if isinstance(bus, Wire) else bus).close()


def memory_bus() -> Bus:
    """The bus of one process."""
    return MemoryBus()


def over(broker: Broker) -> Wire:
    """A bus on a broker."""

    async def inject(topic: str, data: bytes) -> None:
        await broker.send(topic, [Message(value=data)])

    return Wire(BrokerBus(broker), inject)


def memory_wire() -> Wire:
    """The bus on the broker of one process."""
    return over(MemoryBroker())


def redis_wire(url: str) -> Wire:
    """The bus on Redis."""
    return over(RedisBroker(f"{url}?prefix={a_prefix()}"))


def kafka_wire(url: str) -> Wire:
    """The bus on Kafka."""
    return over(KafkaBroker(f"{url}/{a_prefix()}"))


def postgres_wire(dsn: str) -> Wire:
    """The bus on PostgreSQL."""
    schema = a_prefix()

    async def inject(topic: str, data: bytes) -> None:
        connection = await asyncpg.connect(dsn)
        channel = channel_name(schema, topic)
        await connection.execute("SELECT pg_notify($1, $2)", channel, data.decode("ascii"))
        await connection.close()

    return Wire(PostgresBus(dsn, schema=schema), inject)


def an_event(number: int = 1, **fields: Any) -> Event:
    """One event of run 1, or of another one."""
    plain: dict[str, Any] = {
        "type": FactType.TASK_READY,
        "namespace": "default",
        "run_id": RunId("01980000-0000-7000-8000-000000000001"),
        "workflow": "orders",
        "at": NOON + number,
        "state": "READY",
        "task": f"t{number}",
        "position": number,
    }
    return Event(id=f"{number}.0", position=number, fact=Fact(**(plain | fields)))


def events(numbers: int, **fields: Any) -> list[Event]:
    """So many events of one run."""
    return [an_event(number, **fields) for number in range(1, numbers + 1)]


async def first(messages: AsyncIterator[T], number: int) -> list[T]:
    """The next so many."""
    async with asyncio.timeout(SECONDS_MAX):
        return [await anext(messages) for _ in range(number)]


async def until(messages: AsyncIterator[T], enough: Callable[[Sequence[T]], bool]) -> list[T]:
    """What comes, until it is enough."""
    seen: list[T] = []
    async with asyncio.timeout(SECONDS_MAX):
        while not enough(seen):
            seen.append(await anext(messages))
    return seen
