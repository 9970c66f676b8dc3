"""Reads a topic of events from its beginning, with nothing but the broker's own client.

It remembers by itself how far it has come, so that what was sent while it or the broker was away
is read as soon as both are back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from redis.asyncio import Redis
from redis.exceptions import RedisError

EVENTS = "tidemill.events"
TAKE_MAX = 500
WAIT_SECONDS = 0.5
ANSWER_SECONDS = 5.0


async def redis_tail(url: str) -> AsyncIterator[bytes]:
    """Every entry of the stream, without end."""
    client: Any = Redis.from_url(url, socket_timeout=ANSWER_SECONDS)
    last = b"0"
    try:
        while True:
            try:
                answer = await client.xread({EVENTS: last}, TAKE_MAX, block=1_000)
            except (RedisError, OSError):
                await asyncio.sleep(WAIT_SECONDS)
                continue
            for name, fields in (entry for _, entries in answer for entry in entries):
                last = name
                yield fields[b"value"]
    finally:
        await client.aclose()


async def kafka_tail(address: str) -> AsyncIterator[bytes]:
    """Every message of every partition of the topic, without end."""
    settings = {"bootstrap.servers": address, "group.id": "chaos", "enable.auto.commit": False}
    settings |= {"log_level": 0}  # that the broker is away is no news here
    consumer = Consumer(settings, logger=logging.getLogger("chaos.kafka"))
    loop = asyncio.get_running_loop()
    # One thread: the consumer must not be closed while it is still asked for messages.
    thread = ThreadPoolExecutor(1)
    try:
        while not await loop.run_in_executor(thread, _assign, consumer):  # noqa: ASYNC110 - nobody signals this
            await asyncio.sleep(WAIT_SECONDS)
        while True:
            for value in await loop.run_in_executor(thread, _take, consumer):
                yield value
    finally:
        await loop.run_in_executor(thread, consumer.close)
        thread.shutdown()


def _take(consumer: Consumer) -> list[bytes]:
    messages = consumer.consume(TAKE_MAX, WAIT_SECONDS)
    return [message.value() or b"" for message in messages if message.error() is None]


def _assign(consumer: Consumer) -> bool:
    """Begin with every partition, if the topic is there."""
    try:
        topic = consumer.list_topics(EVENTS, timeout=ANSWER_SECONDS).topics[EVENTS]
    except KafkaException:
        return False
    if topic.error is not None or not topic.partitions:
        return False
    consumer.assign([TopicPartition(EVENTS, one, OFFSET_BEGINNING) for one in topic.partitions])
    return True
