"""Buses whose server restarts, forgets, freezes or is somebody else's."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest
import trustme

from tests.builders import a_run_id
from tests.contract.bus_stage import a_prefix, an_event, closing, first
from tests.contract.tls_front import tls_front
from tests.servers import PostgresServer, RedisServer
from tidemill.buses import redis
from tidemill.buses.broker_bus import BrokerBus
from tidemill.buses.notifications import Unfolding, fold
from tidemill.buses.postgres import PostgresBus, channel_name
from tidemill.buses.redis import RedisBroker
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message
from tidemill.ports.bus import Bus, Hint

SECONDS_MAX = 20.0


@pytest.fixture(scope="module")
def forgetful_redis() -> Iterator[RedisServer]:
    """A Redis that begins empty after each start, as a replica that had heard nothing."""
    with RedisServer(appendonly=False) as server:
        yield server


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL to restart."""
    with PostgresServer() as server:
        yield server


Restartable = tuple[Bus, RedisServer | PostgresServer]


@pytest.fixture(params=["redis", "postgres"])
async def restartable(request: pytest.FixtureRequest) -> AsyncIterator[Restartable]:
    """Each of these buses, with its server."""
    if request.param == "redis":
        server: RedisServer | PostgresServer = request.getfixturevalue("forgetful_redis")
        bus: Bus = BrokerBus(RedisBroker(f"{server.url}?prefix={a_prefix()}"))
    else:
        server = request.getfixturevalue("own_postgres")
        bus = PostgresBus(server.url, schema=a_prefix())
    async with closing(bus):
        yield bus, server


async def test_fault_33_a_subscriber_learns_of_the_loss_and_can_come_back(
    restartable: Restartable,
) -> None:
    bus, server = restartable
    async with bus.subscribe() as heard:
        await bus.publish([an_event(1)])
        assert await first(heard, 1) == [an_event(1)]

        server.restart()

        with pytest.raises(Unavailable):
            await first(heard, 1)
    async with bus.subscribe() as heard:
        await bus.publish([an_event(2)])
        assert await first(heard, 1) == [an_event(2)]


async def test_fault_29_hints_are_heard_again_after_a_restart(restartable: Restartable) -> None:
    bus, server = restartable
    async with bus.hints() as heard:
        server.kill()
        await bus.send_hint(Hint(runs=(a_run_id(),)))  # lost, and that is all right
        server.start()

        hearing = asyncio.create_task(first(heard, 2))
        async with asyncio.timeout(SECONDS_MAX):
            while not hearing.done():
                await bus.send_hint(Hint())
                await asyncio.wait({hearing}, timeout=0.1)
        assert [hint.missed for hint in await hearing] == [True, False]


async def test_fault_29_a_bus_that_was_never_there_is_used_when_it_comes(
    restartable: Restartable,
) -> None:
    bus, server = restartable
    server.kill()
    with pytest.raises(Unavailable):
        await bus.publish([an_event(1)])

    server.start()

    async with bus.subscribe() as heard:
        await bus.publish([an_event(2)])
        assert await first(heard, 1) == [an_event(2)]


# Redis


async def test_fault_33_a_group_that_redis_forgot_is_joined_again(
    forgetful_redis: RedisServer,
) -> None:
    broker = RedisBroker(f"{forgetful_redis.url}?prefix={a_prefix()}")
    async with broker.consume(["tasks"], "workers") as member:
        await broker.send("tasks", [Message(value=b"1")])
        assert [one.value for one in await member.take(10)] == [b"1"]

        forgetful_redis.restart()
        await broker.send("tasks", [Message(value=b"2")])

        assert [one.value for one in await _take(member, 10)] == [b"2"]
    await broker.close()


async def _take(member: redis._Member, limit: int) -> list[Message]:
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            try:
                return await member.take(limit)
            except Unavailable:
                continue


async def test_entries_of_a_dead_member_go_to_another_one_and_to_one_only(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "CLAIM_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(redis, "CLAIM_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(redis, "BLOCK_SECONDS", 0.1)
    broker = RedisBroker(f"{redis_url}?prefix={a_prefix()}")
    topics = ["tasks.a", "tasks.b"]
    for topic in topics:
        await broker.send(topic, [Message(value=topic.encode())])
    async with broker.consume(topics, "g") as slow, broker.consume(topics, "g") as quick:
        mine = await slow.take(1)  # it has read both, and hands out one

        yours = await quick.take(1)

        assert {one.value for one in mine + yours} == {b"tasks.a", b"tasks.b"}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await slow.take(1)
    await broker.close()


async def test_a_stream_forgets_its_oldest_entries(redis_url: str) -> None:
    broker = RedisBroker(f"{redis_url}?prefix={a_prefix()}&kept=100")
    for begin in range(0, 2_000, 500):
        messages = [Message(value=str(begin + one).encode()) for one in range(500)]
        await broker.send("tasks", messages)

    async with broker.consume(["tasks"], "g") as member:
        kept = await member.take(2_000)

    assert len(kept) < 400
    assert kept[-1].value == b"1999"
    await broker.close()


async def test_fault_29_a_frozen_redis_is_given_up_in_bounded_time(
    forgetful_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = RedisBroker(forgetful_redis.url)
    await broker.send("t", [Message(value=b"1")])
    monkeypatch.setattr(redis, "ANSWER_SECONDS", 0.3)
    forgetful_redis.pause()
    try:
        with pytest.raises(Unavailable, match="no answer within"):
            await broker.send("t", [Message(value=b"2")])
    finally:
        forgetful_redis.resume()
    await broker.close()


async def test_redis_is_spoken_to_over_tls_when_its_certificate_is_trusted(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    stranger.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    async with tls_front(redis_server.port, context) as port:
        address = f"rediss://localhost:{port}/0?prefix={a_prefix()}&ssl_ca_certs={tmp_path}"
        trusting, wary = RedisBroker(f"{address}/ca.pem"), RedisBroker(f"{address}/other.pem")

        await trusting.send("t", [Message(value=b"1")])
        with pytest.raises(Unavailable, match="certificate"):
            await wary.send("t", [Message(value=b"1")])
        await trusting.close()
        await wary.close()


# PostgreSQL


async def test_schemas_of_one_database_do_not_hear_each_other(postgres_dsn: str) -> None:
    mine = PostgresBus(postgres_dsn, schema=a_prefix())
    yours = PostgresBus(postgres_dsn, schema=a_prefix())
    async with closing(mine), closing(yours), mine.subscribe() as heard:
        await yours.publish([an_event(1)])
        await mine.publish([an_event(2)])

        assert await first(heard, 1) == [an_event(2)]


async def test_without_a_name_the_schema_of_the_connection_counts(postgres_dsn: str) -> None:
    plain, named = PostgresBus(postgres_dsn), PostgresBus(postgres_dsn, schema="public")
    async with closing(plain), closing(named), plain.subscribe() as heard:
        await named.publish([an_event(1)])

        assert await first(heard, 1) == [an_event(1)]


async def test_a_connection_that_the_server_ends_is_made_again(postgres_dsn: str) -> None:
    bus = PostgresBus(postgres_dsn, schema=a_prefix())
    async with closing(bus):
        await bus.publish([an_event(1)])
        connection = await asyncpg.connect(postgres_dsn)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'tidemill bus'"
        )
        await connection.close()

        with suppress(Unavailable):  # at most once
            await bus.publish([an_event(2)])
        await bus.publish([an_event(3)])


def test_a_channel_has_a_name_that_postgresql_takes() -> None:
    long = "s" * 63

    assert channel_name("mill", "events") == "tidemill.mill.events"
    assert len(channel_name(long, "events")) <= 63
    assert channel_name(long, "events") != channel_name(long[:-1] + "t", "events")


class Heard:
    """Stands in for a mailbox."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def put(self, message: Message) -> None:
        self.values.append(message.value)


@pytest.mark.parametrize("size", [0, 1, 7_800, 7_880, 7_890, 7_900, 7_901, 20_000])
def test_messages_of_any_size_fit_into_notifications(size: int) -> None:
    sent, heard = [b'"a"', b'"' + b"x" * size + b'"', b'"b"'], Heard()
    unfolding = Unfolding(heard)  # type: ignore[arg-type]  # it only puts

    payloads = list(fold(sent))
    for payload in payloads:
        unfolding.hear(payload)

    assert max(map(len, payloads)) < 8_000
    assert heard.values == sent


def test_half_of_a_message_is_dropped() -> None:
    heard = Heard()
    unfolding = Unfolding(heard)  # type: ignore[arg-type]  # it only puts
    _, *rest = fold([b'"' + b"x" * 20_000 + b'"'])

    for payload in [*rest, '"whole"', rest[0], "1/2 a", "1/2 b", "2/2 c"]:
        unfolding.hear(payload)

    assert heard.values == [b'"whole"', b"bc"]
