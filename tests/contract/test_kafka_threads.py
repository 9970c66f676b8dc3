"""The threads behind Kafka: when one of them ends, nobody waits for it for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tidemill.buses import kafka_client, kafka_follower
from tidemill.buses.kafka import KafkaBroker
from tidemill.buses.kafka_address import parse_kafka_url
from tidemill.buses.kafka_follower import KafkaFollower
from tidemill.buses.kafka_member import KafkaMember
from tidemill.buses.kafka_reader import KafkaReader
from tidemill.buses.kafka_topics import KafkaTopics
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message

NOWHERE = "kafka://127.0.0.1:1"
ADDRESS = parse_kafka_url(NOWHERE)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading fails in a way that nobody thought of; the thread says so, and nobody listens."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def fail(reader: KafkaReader, limit: int) -> None:
        raise RuntimeError

    monkeypatch.setattr(KafkaReader, "read", fail)
    monkeypatch.setattr(KafkaReader, "stand_at_end", lambda *_: None)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """A library that hangs while it ends a client, until the test is over."""
    released = threading.Event()
    yield released
    released.set()


async def all_threads_ended() -> None:
    """Wait for the last words of our threads."""
    for thread in threading.enumerate():
        if thread.name.startswith("tidemill-kafka"):
            await asyncio.to_thread(thread.join, 5)


@pytest.mark.usefixtures("broken")
async def test_a_member_whose_thread_ended_refuses_whoever_asks() -> None:
    member = KafkaMember(ADDRESS, ["tidemill.work"], "workers")

    async with asyncio.timeout(10):
        for _ in range(2):
            with pytest.raises(Unavailable):
                await member.take(1)
        await member.close()
    await all_threads_ended()


@pytest.mark.usefixtures("broken")
async def test_a_follower_whose_thread_ended_says_so() -> None:
    follower = KafkaFollower(ADDRESS, "tidemill.news", 10)

    async with asyncio.timeout(10):
        await follower.start([0], 1)
        with pytest.raises(Unavailable):
            await anext(follower.unread)
        await follower.close()
    await all_threads_ended()


async def test_whoever_looks_for_a_topic_while_the_broker_closes_begins_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = KafkaBroker(NOWHERE)

    async def closed_meanwhile(topics: KafkaTopics, topic: str) -> int:
        await broker.close()
        return 1

    monkeypatch.setattr(KafkaTopics, "partitions", closed_meanwhile)
    with pytest.raises(Unavailable, match="closed"):
        await broker.send("work", [Message(value=b"1")])

    assert not [one for one in threading.enumerate() if one.name == "tidemill-kafka-sender"]


async def test_a_follower_of_a_busy_topic_notices_new_partitions_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(KafkaReader, "stand_at_end", lambda *_: None)
    monkeypatch.setattr(KafkaReader, "read", lambda *_: [threading.Event().wait(0.01)])
    monkeypatch.setattr(KafkaReader, "check", lambda *_: 2)
    monkeypatch.setattr(kafka_follower, "translated", lambda _: Message(value=b"1"))
    monkeypatch.setattr(kafka_follower, "LOOK_AROUND_SECONDS", 0.05)
    follower = KafkaFollower(ADDRESS, "tidemill.news", 10)

    async with asyncio.timeout(10):
        await follower.start([0], 1)
        with pytest.raises(Unavailable, match="has changed"):
            _ = [message async for message in follower.unread]
        await follower.close()


async def test_a_client_that_hangs_while_it_ends_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, released: threading.Event
) -> None:
    monkeypatch.setattr(KafkaReader, "close", lambda _: released.wait(30))
    monkeypatch.setattr(kafka_client, "CLOSE_SECONDS", 0.05)
    member = KafkaMember(ADDRESS, ["tidemill.work"], "workers")

    async with asyncio.timeout(10):
        await member.close()

    assert "a member of a group did not end within 0.05 s" in caplog.text
    released.set()
    await all_threads_ended()


async def test_the_loop_does_not_wait_while_the_library_ends_a_connection(
    monkeypatch: pytest.MonkeyPatch, released: threading.Event
) -> None:
    class Hanging:
        def __del__(self) -> None:
            released.wait(30)

    topics = KafkaTopics(ADDRESS)
    monkeypatch.setattr(topics, "_admin", Hanging())
    loop = asyncio.get_running_loop()
    began = loop.time()

    topics.close()

    assert loop.time() - began < 10
    released.set()
    await all_threads_ended()
