"""Reads messages from Kafka, as a member of a group or from the end of a topic; blocks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as KafkaMessage

from tidemill.buses.kafka_address import KafkaAddress
from tidemill.buses.kafka_client import Settings, Troubles, client_settings, connected, reason_of
from tidemill.ports.broker import Message

READ_SECONDS = 0.2
ANSWER_SECONDS = 2.0
LEADER_TRIES_MAX = 40
LEADER_WAIT_SECONDS = 0.05
LEAVE_TRIES_MAX = 100
LEAVE_WAIT_SECONDS = 0.02
LEAVE_BATCH = 1_000

# The group has moved on without this member: another one has, or will get, what was read.
_MOVED_ON = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001 - so are the codes of the library itself named
    KafkaError._STATE,  # noqa: SLF001
}
# So it is for a moment after a topic was created or a leader was lost.
_NO_LEADER_YET = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class KafkaReader:
    """One consumer of the client library. All calls come from one thread."""

    def __init__(self, address: KafkaAddress, group: str | None) -> None:
        self.troubles = Troubles(address)
        # The library wants a name even where no group is joined.
        named = {"group.id": group or f"{address.prefix}.followers"}
        settings = client_settings(address, self.troubles) | _CONSUMER_SETTINGS | named
        self._consumer = connected(Consumer, settings)
        self._is_member = group is not None
        self._may_be_paused = False

    def join(self, topics: Sequence[str]) -> None:
        """Become a member of the group; partitions come while reading or resting."""
        self._consumer.subscribe(list(topics), on_assign=self._on_assign)

    def stand_at_end(self, topic: str, partitions: Sequence[int]) -> None:
        """Read what is sent to these partitions from now on; Unavailable without the cluster."""
        try:
            self._consumer.assign([self._end_of(topic, partition) for partition in partitions])
        except KafkaException as error:
            raise self.troubles.unavailable(reason_of(error)) from error

    def _end_of(self, topic: str, partition: int) -> TopicPartition:
        place = TopicPartition(topic, partition)
        for _ in range(LEADER_TRIES_MAX):
            try:
                _, place.offset = self._consumer.get_watermark_offsets(place, ANSWER_SECONDS)
            except KafkaException as error:
                if reason_of(error).code() not in _NO_LEADER_YET:
                    raise
                threading.Event().wait(LEADER_WAIT_SECONDS)
            else:
                return place
        raise self.troubles.unavailable(f"{topic} has no leader for partition {partition}")

    def read(self, limit: int) -> list[KafkaMessage]:
        """Wait a moment for messages; up to `limit` of them."""
        self._go_on()
        first = self._consumer.poll(READ_SECONDS)
        if first is None:
            return []
        rest = self._consumer.consume(limit - 1, 0) if limit > 1 else []
        return self._without_errors([first, *rest])

    def rest(self) -> None:
        """Stay in the group without reading: the partitions are kept, their messages wait."""
        self._consumer.pause(self._consumer.assignment())
        self._may_be_paused = True
        # Partitions that came with this very call are not paused yet.
        early = self._consumer.poll(0)
        if early is not None:
            self.put_back(self._without_errors([early]))

    def accept(self, messages: Sequence[KafkaMessage]) -> list[KafkaMessage]:
        """Mark messages as delivered; those returned are this member's, the others' are not."""
        kept = self._still_mine(messages)
        if not kept:
            return []
        # Messages of a partition come in order: the last one counts.
        ends = {_place(one): one for one in kept}
        offsets = [_beside(one, 1) for one in ends.values()]
        try:
            committed = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            return self._not_accepted(kept, reason_of(error), error)
        refused = [place.error for place in committed if place.error is not None]
        return self._not_accepted(kept, refused[0], None) if refused else kept

    def give_back(self, messages: Sequence[KafkaMessage]) -> None:
        """Mark messages as not delivered after all: this member leaves before anybody saw them."""
        firsts = {_place(one): one for one in reversed(self._still_mine(messages))}
        if firsts:
            offsets = [_beside(one, 0) for one in firsts.values()]
            self._consumer.commit(offsets=offsets, asynchronous=False)

    def put_back(self, messages: Sequence[KafkaMessage]) -> None:
        """Read these messages again, here or wherever their partition goes."""
        for one in {_place(one): one for one in reversed(messages)}.values():
            try:
                self._consumer.seek(_beside(one, 0))
            except KafkaException as error:
                # No longer ours: the new owner begins behind what was last accepted.
                self.troubles.note(reason_of(error))

    def check(self, topic: str) -> int:
        """Ask the cluster how many partitions a topic has; Unavailable without an answer."""
        try:
            found = self._consumer.list_topics(topic, ANSWER_SECONDS).topics.get(topic)
        except KafkaException as error:
            raise self.troubles.unavailable(reason_of(error)) from error
        self.troubles.forget()
        return 0 if found is None or found.error is not None else len(found.partitions)

    def close(self) -> None:
        """End the connections; a member leaves its group, so that others take over at once."""
        if self._is_member:
            with suppress(KafkaException):
                self._leave()
        self._consumer.close()

    def _leave(self) -> None:
        """Give every partition back, for the library must not be closed while one comes or goes.

        It would hang with the interpreter's lock in its hands: librdkafka 4041, 4527, 4884.
        """
        self._consumer.unsubscribe()
        for _ in range(LEAVE_TRIES_MAX):
            unread = self._consumer.consume(LEAVE_BATCH, LEAVE_WAIT_SECONDS)
            if not unread and not self._consumer.assignment():
                return

    def _on_assign(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        # A partition that went away while paused comes back paused.
        self._may_be_paused = True

    def _still_mine(self, messages: Sequence[KafkaMessage]) -> list[KafkaMessage]:
        if not messages:
            return []
        mine = {(place.topic, place.partition) for place in self._consumer.assignment()}
        return [one for one in messages if _place(one) in mine]

    def _go_on(self) -> None:
        if self._may_be_paused:
            self._may_be_paused = False
            self._consumer.resume(self._consumer.assignment())

    def _without_errors(self, messages: Sequence[KafkaMessage]) -> list[KafkaMessage]:
        for error in filter(None, (message.error() for message in messages)):
            self.troubles.note(error)
        return [message for message in messages if message.error() is None]

    def _not_accepted(
        self, messages: Sequence[KafkaMessage], reason: KafkaError, cause: Exception | None
    ) -> list[KafkaMessage]:
        self.put_back(messages)
        if reason.code() in _MOVED_ON:
            return []
        raise self.troubles.unavailable(reason) from cause


def translated(message: KafkaMessage) -> Message:
    """A message of the client library as ours; odd bytes in keys and headers are replaced."""
    key = message.key()
    headers = {
        name: value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
        for name, value in dict(message.headers() or {}).items()
    }
    return Message(
        value=message.value() or b"",
        key=None if key is None else key.decode(errors="replace"),
        headers=headers,
    )


def _place(message: KafkaMessage) -> tuple[str, int]:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None, "a message that was read has a place"
    return topic, partition


def _beside(message: KafkaMessage, steps: int) -> TopicPartition:
    offset = message.offset()
    assert offset is not None
    return TopicPartition(*_place(message), offset + steps)


_CONSUMER_SETTINGS: Settings = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 2_000,
    "max.poll.interval.ms": 60_000,
    # Members that stay keep reading while others come and go.
    "partition.assignment.strategy": "cooperative-sticky",
    "socket.timeout.ms": 6_000,
    "queued.min.messages": 500,
    "fetch.message.max.bytes": 262_144,
    "queued.max.messages.kbytes": 16_384,
    "fetch.error.backoff.ms": 100,
    "fetch.queue.backoff.ms": 20,
}
