"""What every broker does: a test that asks for `broker` is part of the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from tests.contract.broker_stage import (
    PATIENCE_SECONDS,
    eventually,
    fresh_prefix,
    joined,
    next_of,
    numbered,
    numbers_in,
    share_all,
    take_all,
)
from tests.servers import KafkaServer, RedisServer, Server, missing
from tidemill.buses.kafka import KafkaBroker
from tidemill.buses.memory import MemoryBroker
from tidemill.buses.redis import RedisBroker
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Broker, Consumer, Message

Connect = Callable[[], Broker]


@pytest.fixture
def memory_connect() -> Connect:
    """The one broker of this process, each time."""
    only = MemoryBroker()
    return lambda: only


@pytest.fixture
def redis_connect(redis_url: str) -> Connect:
    """Connections to the topics of one test in a real Redis."""
    prefix = fresh_prefix()
    return lambda: RedisBroker(f"{redis_url}?prefix={prefix}")


@pytest.fixture
def kafka_connect(kafka_url: str) -> Connect:
    """Connections to the topics of one test in a real Kafka."""
    prefix = fresh_prefix()
    return lambda: KafkaBroker(f"{kafka_url}/{prefix}")


@pytest.fixture(params=["memory", "redis", "kafka"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """As many connections to the same topics as a test needs."""
    chosen: Connect = request.getfixturevalue(f"{request.param}_connect")
    return chosen


@pytest.fixture
async def broker(connect: Connect) -> AsyncIterator[Broker]:
    """Each broker in turn."""
    connected = connect()
    yield connected
    await connected.close()


@pytest.fixture(params=["redis", "kafka"])
def server(request: pytest.FixtureRequest) -> Server:
    """A server to be killed, which keeps what it was given."""
    chosen: RedisServer | KafkaServer = request.getfixturevalue(f"{request.param}_server")
    if isinstance(chosen, KafkaServer) and not chosen.durable:
        missing("Apache Kafka", RuntimeError("what stands in for it keeps nothing"))
    return chosen


@pytest.fixture
async def served(server: Server) -> AsyncIterator[Broker]:
    """A broker whose server the test kills; it runs again afterwards."""
    prefix = fresh_prefix()
    address = server.url
    broker: Broker = (
        KafkaBroker(f"{address}/{prefix}")
        if isinstance(server, KafkaServer)
        else RedisBroker(f"{address}?prefix={prefix}")
    )
    yield broker
    await broker.close()
    if not server.running:
        server.start()


async def test_a_message_arrives_as_it_was_sent(broker: Broker) -> None:
    sent = [
        Message(value=b"\x00\xff\n", key="schlüssel", headers={"type": "tidemill.täsk.v1"}),
        Message(value=b"", key=None),
    ]

    await broker.send("work", sent)

    async with broker.consume(["work"], "workers") as member:
        taken = await take_all(member, 2)
    assert sorted(taken, key=lambda message: message.value) == sent[::-1]


async def test_sending_nothing_is_not_an_error(broker: Broker) -> None:
    await broker.send("work", [])


async def test_each_message_goes_to_one_member_of_a_group(broker: Broker) -> None:
    async with AsyncExitStack() as stack:
        members = await joined(broker, stack, "work", "workers")

        await broker.send("work", numbered(300, begin=1_000))
        shares = await share_all(members, 300)

    assert sorted(numbers_in([*shares[0], *shares[1]])) == list(range(1_000, 1_300))


async def test_messages_without_a_key_are_spread_over_the_members(broker: Broker) -> None:
    async with AsyncExitStack() as stack:
        members = await joined(broker, stack, "work", "workers")

        await broker.send("work", numbered(100))
        shares = await share_all(members, 100)

    assert min(map(len, shares)) > 0


async def test_every_group_gets_every_message(broker: Broker) -> None:
    await broker.send("work", numbered(20))

    async with broker.consume(["work"], "one") as one, broker.consume(["work"], "two") as two:
        taken = [await take_all(one, 20), await take_all(two, 20)]

    assert [sorted(numbers_in(messages)) for messages in taken] == [list(range(20))] * 2


async def test_one_member_reads_several_topics(broker: Broker) -> None:
    await broker.send("tasks.default.main", numbered(3))
    await broker.send("tasks.default.gpu", numbered(3, begin=3))

    async with broker.consume(["tasks.default.main", "tasks.default.gpu"], "workers") as member:
        taken = await take_all(member, 6)

    assert sorted(numbers_in(taken)) == list(range(6))


async def test_messages_of_one_key_arrive_in_the_order_of_sending(broker: Broker) -> None:
    for begin in range(0, 60, 20):
        for key in ("a", "b", "c"):
            await broker.send("reports", numbered(20, key=key, begin=begin))

    async with broker.consume(["reports"], "schedulers") as member:
        taken = await take_all(member, 180, limit=7)

    by_key = {key: [one for one in taken if one.key == key] for key in ("a", "b", "c")}
    assert {key: numbers_in(found) for key, found in by_key.items()} == {
        key: list(range(60)) for key in "abc"
    }


async def test_a_member_never_gets_more_than_it_asked_for(broker: Broker) -> None:
    await broker.send("work", numbered(30))

    async with broker.consume(["work"], "workers") as member:
        sizes = [len(await member.take(4)) for _ in range(3)]

    assert all(1 <= size <= 4 for size in sizes)


async def test_what_nobody_has_read_is_kept_for_the_next_member(broker: Broker) -> None:
    await broker.send("work", numbered(10))
    async with broker.consume(["work"], "workers") as member:
        first = await take_all(member, 4, limit=4)
    await broker.send("work", numbered(10, begin=10))

    async with broker.consume(["work"], "workers") as member:
        second = await take_all(member, 20 - len(first))

    assert sorted(numbers_in([*first, *second])) == list(range(20))


async def test_what_a_leaving_member_has_not_taken_goes_to_the_others(broker: Broker) -> None:
    async with AsyncExitStack() as staying, AsyncExitStack() as leaving:
        stayer = await staying.enter_async_context(broker.consume(["work"], "workers"))
        await leaving.enter_async_context(broker.consume(["work"], "workers"))
        await broker.send("work", numbered(100))

        await leaving.aclose()
        taken = await take_all(stayer, 100)

    assert set(numbers_in(taken)) == set(range(100))


async def test_a_resting_member_loses_nothing_and_goes_on_later(broker: Broker) -> None:
    async with AsyncExitStack() as stack:
        members = await joined(broker, stack, "work", "workers")
        await broker.send("work", numbered(60, begin=1_000))
        while_resting = await _take_for_a_second(members[0])

        shares = await share_all(members, 60 - len(while_resting))

    taken = [*while_resting, *shares[0], *shares[1]]
    assert sorted(numbers_in(taken)) == list(range(1_000, 1_060))


async def test_a_take_that_is_given_up_loses_nothing(broker: Broker) -> None:
    async with broker.consume(["work"], "workers") as member:
        await broker.send("work", numbered(1))
        await take_all(member, 1)
        taken: list[Message] = []
        for begin in range(100, 140):
            taking = asyncio.ensure_future(member.take(5))
            await broker.send("work", numbered(1, begin=begin))
            taking.cancel()
            [outcome] = await asyncio.gather(taking, return_exceptions=True)
            taken += outcome if isinstance(outcome, list) else []

        taken += await take_all(member, 40 - len(taken))

    assert sorted(numbers_in(taken)) == list(range(100, 140))


async def test_followers_see_everything_that_is_sent_from_now_on(broker: Broker) -> None:
    await broker.send("events", numbered(5))

    async with broker.follow("events") as one, broker.follow("events") as two:
        await broker.send("events", numbered(20, begin=100))
        seen = [await next_of(one, 20), await next_of(two, 20)]

    assert [sorted(numbers_in(messages)) for messages in seen] == [list(range(100, 120))] * 2


async def test_followers_do_not_take_from_groups(broker: Broker) -> None:
    async with broker.follow("events") as follower:
        await broker.send("events", numbered(5))
        await next_of(follower, 5)

    async with broker.consume(["events"], "readers") as member:
        assert len(await take_all(member, 5)) == 5


async def test_whoever_follows_a_key_sees_its_messages_in_order(broker: Broker) -> None:
    async with broker.follow("answers", key="session-1") as answers:
        for number in range(20):
            await broker.send("answers", numbered(1, key="session-1", begin=number))
            await broker.send("answers", numbered(1, key=f"session-{number + 2}", begin=number))

        async with asyncio.timeout(PATIENCE_SECONDS):
            mine = [one async for one in _of_key(answers, "session-1", 20)]

    assert numbers_in(mine) == list(range(20))


async def test_other_connections_carry_the_same_topics(connect: Connect) -> None:
    sender, receiver = connect(), connect()

    async with receiver.follow("hints") as hints:
        await sender.send("hints", numbered(1))
        seen = await next_of(hints, 1)

    await sender.close()
    await receiver.close()
    assert numbers_in(seen) == [0]


async def test_names_of_topics_may_hold_what_labels_hold(broker: Broker) -> None:
    await broker.send("tasks.default.main.zone=eu,disk=ssd/1", numbered(1))
    await broker.send("tasks.default.main.zone=us,disk=ssd/1", numbered(1, begin=1))

    async with broker.consume(["tasks.default.main.zone=us,disk=ssd/1"], "workers") as member:
        assert numbers_in(await take_all(member, 1)) == [1]


async def test_closing_twice_is_harmless(connect: Connect) -> None:
    broker = connect()
    await broker.send("work", numbered(1))

    await broker.close()
    await broker.close()


async def test_a_dead_broker_is_told_and_forgiven_when_it_is_back(
    served: Broker, server: Server
) -> None:
    await served.send("work", numbered(5))
    async with served.consume(["work"], "workers") as member, served.follow("events") as events:
        taken = await take_all(member, 1, limit=1)

        server.kill()
        attempts = (_send_once(served), take_all(member, 10), next_of(events, 1))
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
        await asyncio.to_thread(server.start)
        await eventually(lambda: served.send("work", numbered(1, begin=99)))
        while 99 not in numbers_in(taken) or len(taken) < 6:
            taken += await eventually(lambda: member.take(10))

    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert set(numbers_in(taken)) >= {0, 1, 2, 3, 4, 99}
    assert await eventually(lambda: _seen_by_a_follower(served)) == [0]


async def test_a_broker_that_was_never_there_is_unavailable_and_not_silent(
    served: Broker, server: Server
) -> None:
    server.kill()

    attempts = (_consume_once(served), _follow_once(served), _send_once(served))
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    await asyncio.to_thread(server.start)

    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    await eventually(lambda: _send_once(served))


async def _consume_once(broker: Broker) -> None:
    async with broker.consume(["work"], "workers") as member:
        await member.take(1)


async def _seen_by_a_follower(broker: Broker) -> list[int]:
    async with broker.follow("events") as events:
        await broker.send("events", numbered(1))
        return numbers_in(await next_of(events, 1))


async def _follow_once(broker: Broker) -> None:
    async with broker.follow("events") as events:
        await anext(events)


async def _send_once(broker: Broker) -> None:
    await broker.send("work", numbered(1))


async def _take_for_a_second(member: Consumer) -> list[Message]:
    taken: list[Message] = []
    try:
        async with asyncio.timeout(1):
            while True:
                taken += await member.take(5)
    except TimeoutError:
        return taken


async def _of_key(messages: AsyncIterator[Message], key: str, count: int) -> AsyncIterator[Message]:
    while count:
        message = await anext(messages)
        if message.key == key:
            count -= 1
            yield message
