"""The broker over Apache Kafka.

Keys choose partitions here, not in the client library, so that senders and followers agree;
messages without a key go round the partitions one by one. Nothing is transactional: the store
decides what happened, and a message that comes twice changes nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from zlib import crc32

from tidemill.buses.kafka_address import parse_kafka_url
from tidemill.buses.kafka_follower import KafkaFollower
from tidemill.buses.kafka_member import KafkaMember
from tidemill.buses.kafka_sender import KafkaSender, Placed
from tidemill.buses.kafka_topics import KafkaTopics
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message

UNREAD_MAX = 10_000


class KafkaBroker:
    """Topics of one Kafka cluster. It connects when it is used, and again when it was cut off."""

    def __init__(self, url: str, *, unread_max: int = UNREAD_MAX) -> None:
        address = self._address = parse_kafka_url(url)
        self._unread_max = unread_max
        self._topics = KafkaTopics(address)
        self._sender = KafkaSender(address)
        # Processes do not all begin with the same partition.
        self._turn = count(os.getpid())
        self._readers: set[KafkaMember | KafkaFollower] = set()
        self._closed = False

    async def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Append messages; Unavailable after some 5 s when the cluster has not taken them."""
        if not messages:
            return
        partitions = await self._partitions(topic)
        placed = [Placed(self._partition_for(one.key, partitions), one) for one in messages]
        try:
            await self._sender.send(self._topics.name(topic), placed)
        except Unavailable:
            self._topics.forget(topic)
            raise

    @asynccontextmanager
    async def consume(self, topics: Sequence[str], group: str) -> AsyncIterator[KafkaMember]:
        """Join a group, which begins with the oldest message that the topics still hold."""
        assert topics, "a group shares at least one topic"
        await asyncio.gather(*map(self._partitions, topics))
        names = [self._topics.name(topic) for topic in topics]
        member = KafkaMember(self._address, names, group)
        self._readers.add(member)
        try:
            yield member
        finally:
            self._readers.discard(member)
            await member.close()

    @asynccontextmanager
    async def follow(
        self, topic: str, key: str | None = None
    ) -> AsyncIterator[AsyncIterator[Message]]:
        """See what is sent from now on; ends with Unavailable when partitions are added, too."""
        partitions = await self._partitions(topic)
        wanted = range(partitions) if key is None else [_partition_of(key, partitions)]
        follower = KafkaFollower(self._address, self._topics.name(topic), self._unread_max)
        self._readers.add(follower)
        try:
            await follower.start(wanted, partitions)
            yield follower.unread
        except Unavailable:
            self._topics.forget(topic)
            raise
        finally:
            self._readers.discard(follower)
            await follower.close()

    async def close(self) -> None:
        """End every connection, the last threads in the background; safe to call twice."""
        self._closed = True
        readers, self._readers = self._readers, set()
        await asyncio.gather(self._sender.close(), *(reader.close() for reader in readers))
        self._topics.close()

    async def _partitions(self, topic: str) -> int:
        self._check_open()
        partitions = await self._topics.partitions(topic)
        self._check_open()  # whoever waited meanwhile must not begin anything that nobody ends
        return partitions

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("Kafka: this connection is closed")

    def _partition_for(self, key: str | None, partitions: int) -> int:
        return next(self._turn) % partitions if key is None else _partition_of(key, partitions)


def _partition_of(key: str, partitions: int) -> int:
    return crc32(key.encode()) % partitions
