"""What goes wrong with Kafka in particular, and what must not come of it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from tests.contract.broker_stage import (
    eventually,
    fresh_prefix,
    joined,
    next_of,
    numbered,
    numbers_in,
    share_all,
    take_all,
)
from tests.servers import KafkaServer, missing
from tidemill.buses import kafka_follower, kafka_reader
from tidemill.buses.kafka import KafkaBroker
from tidemill.buses.kafka_address import parse_kafka_url
from tidemill.buses.kafka_reader import KafkaReader
from tidemill.buses.mailbox import Mailbox
from tidemill.domain.errors import InvalidInput, Unavailable
from tidemill.ports.broker import Consumer, Message

JOINS_AND_HANGS = """
import asyncio, sys
from tidemill.buses.kafka import KafkaBroker

async def main(url):
    async with KafkaBroker(url).consume(["work"], "workers") as member:
        await member.take(1)
        print("joined", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def url(kafka_server: KafkaServer) -> str:
    """Topics of this test alone, in Apache Kafka itself."""
    if not kafka_server.durable:
        missing("Apache Kafka", RuntimeError("only what stands in for it is here"))
    return f"{kafka_server.url}/{fresh_prefix()}"


@pytest.fixture
async def broker(url: str) -> AsyncIterator[KafkaBroker]:
    """A connection to them."""
    connected = KafkaBroker(url)
    yield connected
    await connected.close()


async def test_fault_31_a_rebalance_in_the_middle_of_batches_loses_no_message(
    broker: KafkaBroker,
) -> None:
    taken: list[Message] = []

    async def member() -> None:
        async with broker.consume(["work"], "workers") as consumer:
            while True:
                taken.extend(await consumer.take(20))

    def has_taken(number: int) -> Callable[[], bool]:
        return lambda: len(taken) >= number

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        members = [group.create_task(member())]
        for begin in range(0, 3_000, 500):
            await broker.send("work", numbered(500, begin=begin))
            members.append(group.create_task(member()))
            await _until(has_taken(begin))
            members.pop(0).cancel()
        await _until(lambda: set(numbers_in(taken)) == set(range(3_000)))
        for one in members:
            one.cancel()

    assert len(taken) - 3_000 < 60, "each rebalance may double what was in hand, not more"


async def test_what_a_rebalance_took_away_is_not_accepted(broker: KafkaBroker, url: str) -> None:
    await broker.send("work", numbered(60))
    address = parse_kafka_url(url)
    topic = f"{address.prefix}.work"
    old, new = KafkaReader(address, "workers"), KafkaReader(address, "workers")
    old.join([topic])
    in_hand = await asyncio.to_thread(_read_all, old, 60)

    new.join([topic])
    elsewhere = asyncio.create_task(asyncio.to_thread(_read_all, new, 1))
    while not elsewhere.done():
        await asyncio.to_thread(old.rest)
    accepted = await asyncio.to_thread(old.accept, in_hand)
    moved = await elsewhere
    moved += await asyncio.to_thread(_read_all, new, 60 - len(accepted) - len(moved))

    for reader in (old, new):
        await asyncio.to_thread(reader.close)
    values = [message.value() for message in [*accepted, *moved]]
    assert 0 < len(accepted) < 60
    assert sorted(map(int, filter(None, values))) == list(range(60))


async def test_the_library_is_closed_when_no_partition_comes_or_goes_any_more(
    broker: KafkaBroker, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_hand: list[int] = []

    class Watched(KafkaConsumer):
        def close(self) -> None:
            in_hand.append(len(self.assignment()))
            super().close()

    monkeypatch.setattr(kafka_reader, "Consumer", Watched)
    await broker.send("work", numbered(60))
    address = parse_kafka_url(url)
    reader = KafkaReader(address, "workers")
    reader.join([f"{address.prefix}.work"])
    assert await asyncio.to_thread(_read_all, reader, 1)

    await asyncio.to_thread(reader.close)

    assert in_hand == [0]


async def test_messages_of_a_killed_member_go_to_the_others(broker: KafkaBroker, url: str) -> None:
    await broker.send("work", numbered(1))
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-c", JOINS_AND_HANGS, url, stdout=subprocess.PIPE
    )
    assert victim.stdout is not None
    await victim.stdout.readline()
    await broker.send("work", numbered(60, begin=100))

    victim.send_signal(signal.SIGKILL)
    await victim.wait()

    async with broker.consume(["work"], "workers") as member:
        assert sorted(numbers_in(await take_all(member, 60))) == list(range(100, 160))


async def test_a_member_that_rests_for_long_keeps_its_share(broker: KafkaBroker) -> None:
    async with AsyncExitStack() as stack:
        resting, busy = await joined(broker, stack, "work", "workers")
        await broker.send("work", numbered(60))
        beside = await _take_for(busy, seconds=8)  # longer than the session of a dead member

        [mine] = await share_all([resting], 60 - len(beside))

    assert 0 < len(beside) < 60
    assert sorted(numbers_in([*beside, *mine])) == list(range(60))


async def test_fault_32_a_second_producer_of_the_same_name_fences_nobody(
    broker: KafkaBroker, url: str, kafka_server: KafkaServer
) -> None:
    second = KafkaBroker(url)
    await broker.send("other", numbered(1))
    topic = f"{parse_kafka_url(url).prefix}.other"
    await asyncio.to_thread(_fence, kafka_server.address, "tidemill", topic)

    sending = [broker.send("work", numbered(20, begin=begin)) for begin in range(0, 200, 20)]
    sending += [second.send("work", numbered(20, begin=begin)) for begin in range(200, 400, 20)]
    await asyncio.gather(*sending)

    await second.close()
    async with broker.consume(["work"], "workers") as member:
        assert sorted(numbers_in(await take_all(member, 400))) == list(range(400))


async def test_fault_32_a_producer_that_was_shut_out_is_replaced(broker: KafkaBroker) -> None:
    await broker.send("work", numbered(1))
    shut_out = broker._sender._current()
    shut_out.note(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH, "fenced", fatal=True))

    await broker.send("work", numbered(1, begin=1))

    assert broker._sender._current() is not shut_out
    async with broker.consume(["work"], "workers") as member:
        assert sorted(numbers_in(await take_all(member, 2))) == [0, 1]


async def test_a_deleted_topic_comes_back_when_it_is_used(
    broker: KafkaBroker, url: str, kafka_server: KafkaServer
) -> None:
    await broker.send("work", numbered(1))
    async with broker.consume(["work"], "workers") as member:
        await take_all(member, 1)
        name = f"{parse_kafka_url(url).prefix}.work"
        admin = AdminClient({"bootstrap.servers": kafka_server.address})
        await asyncio.to_thread(admin.delete_topics([name])[name].result, 10)

        await eventually(lambda: broker.send("work", numbered(1, begin=7)))

        assert 7 in numbers_in(await take_all(member, 1))


async def test_a_follower_ends_when_partitions_are_added(
    broker: KafkaBroker, url: str, kafka_server: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_follower, "LOOK_AROUND_SECONDS", 0.3)
    async with broker.follow("answers", key="a") as answers:
        name = f"{parse_kafka_url(url).prefix}.answers"
        admin = AdminClient({"bootstrap.servers": kafka_server.address})
        more = admin.create_partitions([NewPartitions(name, 9)])
        await asyncio.to_thread(more[name].result, 10)

        with pytest.raises(Unavailable, match="has changed"):
            await next_of(answers, 1)


async def test_large_messages_pass_and_larger_ones_are_refused(broker: KafkaBroker) -> None:
    await broker.send("reports", [Message(value=b"x" * 8_000_000)])

    with pytest.raises(InvalidInput, match="9,000,000 bytes"):
        await broker.send("reports", [Message(value=b"x" * 9_000_000)])

    async with broker.consume(["reports"], "schedulers") as member:
        assert [len(one.value) for one in await take_all(member, 1)] == [8_000_000]


async def test_a_slow_follower_loses_the_oldest_messages(url: str) -> None:
    broker = KafkaBroker(url, unread_max=10)
    async with broker.follow("events", key="run") as events:
        await broker.send("events", numbered(100, key="run"))
        await next_of(events, 1)
        await broker.send("events", numbered(100, key="run", begin=100))
        assert isinstance(events, Mailbox)
        await _until(lambda: numbers_in(events._items)[-1:] == [199])

        seen = await next_of(events, 10)

    await broker.close()
    assert numbers_in(seen) == list(range(190, 200))


async def test_a_closed_broker_leaves_no_thread_and_refuses_work(url: str) -> None:
    await _until(lambda: not _own_threads())  # those of the tests before may still be ending
    before = _native_threads()
    broker = KafkaBroker(url)
    async with broker.follow("events"), broker.consume(["work"], "workers") as member:
        await broker.send("work", numbered(1))
        await take_all(member, 1)
        await broker.close()

        with pytest.raises(Unavailable):
            await member.take(1)
    with pytest.raises(Unavailable):
        await broker.send("work", numbered(1))

    await _until(lambda: not _own_threads() and _native_threads() <= before)


async def test_an_unreachable_broker_is_named_without_noise(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    broker = KafkaBroker("kafka://ann:secret@127.0.0.1:1?security=plaintext")

    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1") as told:
        await broker.send("work", numbered(1))

    await broker.close()
    assert "secret" not in str(told.value)
    assert [record for record in caplog.records if "kafka" in record.name] == []
    assert capfd.readouterr().err == ""


async def test_a_missing_certificate_is_named() -> None:
    broker = KafkaBroker("kafka://127.0.0.1:1?security=ssl&ca=/nowhere/ca.pem")

    with pytest.raises(InvalidInput, match="ca"):
        await broker.send("work", numbered(1))

    await broker.close()


def _fence(address: str, name: str, topic: str) -> None:
    settings = {"bootstrap.servers": address, "transactional.id": name, "client.id": "tidemill"}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(20)
    second.init_transactions(20)
    first.begin_transaction()
    first.produce(topic, b"of a producer that somebody replaced")
    with pytest.raises(KafkaException):
        first.commit_transaction(20)


def _read_all(reader: KafkaReader, count: int) -> list[KafkaMessage]:
    found: list[KafkaMessage] = []
    for _ in range(150):  # 30 s of silence at most
        if len(found) >= count:
            break
        found += reader.read(100)
    return found


async def _take_for(member: Consumer, *, seconds: float) -> list[Message]:
    taken: list[Message] = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                taken += await member.take(5)
    except TimeoutError:
        return taken


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(40):
        while not holds():  # noqa: ASYNC110 - nobody signals this
            await asyncio.sleep(0.02)


def _own_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("tidemill-kafka")]


def _native_threads() -> int:
    return len(list(Path("/proc/self/task").iterdir())) if os.name == "posix" else 0
