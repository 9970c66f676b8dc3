"""Which topics there are in a Kafka cluster and in how many parts; missing ones are created."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tidemill.buses.kafka_address import KafkaAddress
from tidemill.buses.kafka_client import (
    MESSAGE_BYTES_MAX,
    Troubles,
    client_settings,
    connected,
    reason_of,
    topic_name,
)
from tidemill.domain.errors import InvalidInput, Problem

ANSWER_SECONDS = 4.0
REFRESH_SECONDS = 30.0
"""How long a number of partitions is believed: somebody may have added some."""

PROPAGATION_TRIES_MAX = 40
PROPAGATION_WAIT_SECONDS = 0.05
LOOKUPS_AT_ONCE_MAX = 4
SHORT_LIVED = ("hints", "answers", "heartbeats", "reports")
SHORT_MILLISECONDS = 600_000

# A topic that somebody else made, or that only somebody else may make.
_LOOK_INSTEAD = {
    KafkaError.TOPIC_ALREADY_EXISTS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.POLICY_VIOLATION,
}
_REFUSED = {
    KafkaError.TOPIC_EXCEPTION: "prefix",
    KafkaError.INVALID_PARTITIONS: "partitions",
    KafkaError.INVALID_REPLICATION_FACTOR: "replication",
}


class _Known(NamedTuple):
    partitions: int
    until: float


class KafkaTopics:
    """Creates topics when they are first used and remembers how many partitions they have."""

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address
        self._troubles = Troubles(address)
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE_MAX, "tidemill-kafka-topics")
        self._making = threading.Lock()
        self._admin: AdminClient | None = None
        self._known: dict[str, _Known] = {}
        self._looking: dict[str, asyncio.Future[int]] = {}

    def name(self, topic: str) -> str:
        """The topic as the cluster knows it."""
        return topic_name(self._address.prefix, topic)

    async def partitions(self, topic: str) -> int:
        """In how many parts a topic is, which exists then; Unavailable without the cluster."""
        loop = asyncio.get_running_loop()
        known = self._known.get(topic)
        if known is not None and loop.time() < known.until:
            return known.partitions
        looking = self._looking.get(topic)
        if looking is None:
            before = known.partitions if known is not None else None
            looking = loop.run_in_executor(self._threads, self._look, topic, before)
            self._looking[topic] = looking
            looking.add_done_callback(lambda done: self._remember(topic, done, loop.time()))
        return await asyncio.shield(looking)

    def forget(self, topic: str) -> None:
        """Look again before the next use: the topic may be gone."""
        self._known.pop(topic, None)

    def close(self) -> None:
        """Let go of the connection; lookups under way end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._admin is None:
            return
        held, self._admin = [self._admin], None
        # The library waits for its own threads when it lets go: not in the loop's thread.
        threading.Thread(target=held.clear, name="tidemill-kafka-end", daemon=True).start()

    def _remember(self, topic: str, done: asyncio.Future[int], now: float) -> None:
        self._looking.pop(topic, None)
        if not done.cancelled() and done.exception() is None:
            self._known[topic] = _Known(done.result(), now + REFRESH_SECONDS)

    # What follows runs in threads.

    def _look(self, topic: str, before: int | None) -> int:
        name = self.name(topic)
        if before is not None:
            # A cluster that does not answer now is for the caller to find out.
            return self._count(name) or before
        self._create(name, topic)
        for _ in range(PROPAGATION_TRIES_MAX):
            if count := self._count(name):
                return count
            threading.Event().wait(PROPAGATION_WAIT_SECONDS)
        raise self._troubles.unavailable(f"the topic {name} is not there; create it")

    def _client(self) -> AdminClient:
        with self._making:
            if self._admin is None:
                settings = client_settings(self._address, self._troubles)
                self._admin = connected(AdminClient, settings)
            self._admin.poll(0)  # what it has to say waits until somebody listens
            return self._admin

    def _create(self, name: str, topic: str) -> None:
        settings = {"max.message.bytes": str(MESSAGE_BYTES_MAX)}
        # What was not read by then is said again, or nobody waits for it any more.
        if topic in SHORT_LIVED or topic.startswith("tasks."):
            settings |= {"retention.ms": str(SHORT_MILLISECONDS)}
            settings |= {"segment.ms": str(SHORT_MILLISECONDS)}
        wanted = NewTopic(
            name, self._address.partitions, self._address.replication or -1, config=settings
        )
        asked = self._client().create_topics(
            [wanted], operation_timeout=ANSWER_SECONDS, request_timeout=ANSWER_SECONDS
        )
        try:
            asked[name].result(ANSWER_SECONDS + 1)
        except KafkaException as error:
            self._client()  # it may have told the cause meanwhile
            self._judge(reason_of(error), name)
        except TimeoutError as error:
            raise self._troubles.unavailable("no answer to the creation of a topic") from error
        self._troubles.forget()

    def _judge(self, reason: KafkaError, name: str) -> None:
        if reason.code() in _LOOK_INSTEAD:
            return
        if reason.code() in _REFUSED:
            message = f"the topic {name} is refused: {reason.str()}"
            path = f"kafka.{_REFUSED[reason.code()]}"
            raise InvalidInput([Problem(path=path, message=message, code="topic")])
        raise self._troubles.unavailable(reason)

    def _count(self, name: str) -> int:
        """How many partitions, 0 when the topic is not there or nobody answers."""
        try:
            found = self._client().list_topics(name, ANSWER_SECONDS).topics.get(name)
        except KafkaException:
            return 0
        return 0 if found is None or found.error is not None else len(found.partitions)
