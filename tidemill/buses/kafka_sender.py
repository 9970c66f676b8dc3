"""Sends messages to Kafka and waits until the cluster has them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as KafkaMessage

from tidemill.buses.kafka_address import KafkaAddress
from tidemill.buses.kafka_client import (
    MESSAGE_BYTES_MAX,
    Settings,
    Troubles,
    client_settings,
    connected,
    ended,
    reason_of,
)
from tidemill.domain.errors import InvalidInput, Problem, TidemillError
from tidemill.ports.broker import Message

DELIVERY_SECONDS = 5.0
LISTEN_SECONDS = 0.2
FLUSH_SECONDS = 1.0
QUEUED_MESSAGES_MAX = 100_000
QUEUED_KILOBYTES_MAX = 65_536


_FATAL = KafkaError._FATAL  # noqa: SLF001 - so are the codes of the library itself named


class Placed(NamedTuple):
    """A message and the partition that it goes to."""

    partition: int
    message: Message


class KafkaSender:
    """One idempotent producer; a new one takes over when the cluster has shut it out."""

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address
        self._outlet: _Outlet | None = None
        self._retired: list[_Outlet] = []

    async def send(self, topic: str, messages: Sequence[Placed]) -> None:
        """Return when the cluster has all messages; Unavailable when one of them is not there."""
        outlet = self._current()
        delivery = _Delivery(len(messages), asyncio.get_running_loop())
        for sent, placed in enumerate(messages):
            refusal = outlet.produce(topic, placed, delivery)
            if refusal is not None:
                delivery.give_up(len(messages) - sent)
                raise refusal
        try:
            async with asyncio.timeout(DELIVERY_SECONDS + 2 * FLUSH_SECONDS):
                error = await delivery.done
        except TimeoutError as late:
            raise outlet.troubles.unavailable("no word about a delivery") from late
        if error is not None:
            raise outlet.troubles.unavailable(error)
        outlet.troubles.forget()

    async def close(self) -> None:
        """Give what is under way a moment, then let go of it."""
        outlets, self._retired = [*self._retired], []
        if self._outlet is not None:
            outlets.append(self._outlet)
            self._outlet = None
        for outlet in outlets:
            outlet.retire()
        await asyncio.gather(*(ended(outlet.ended, "a sender") for outlet in outlets))

    def _current(self) -> _Outlet:
        self._retired = [outlet for outlet in self._retired if not outlet.ended.is_set()]
        if self._outlet is not None and self._outlet.broken:
            self._outlet.retire()
            self._retired.append(self._outlet)
            self._outlet = None
        if self._outlet is None:
            self._outlet = _Outlet(self._address)
        return self._outlet


class _Outlet:
    """A producer and the thread that hears about its deliveries."""

    def __init__(self, address: KafkaAddress) -> None:
        self.troubles = Troubles(address)
        self.broken = False
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._retiring = threading.Event()
        settings = client_settings(address, self.troubles) | _PRODUCER_SETTINGS
        self._producer = connected(Producer, settings | {"error_cb": self.note})
        threading.Thread(target=self._listen, name="tidemill-kafka-sender", daemon=True).start()

    def note(self, error: KafkaError) -> None:
        """Hear what went wrong; after a fatal error a producer refuses everything for good."""
        self.troubles.note(error)
        self.broken = self.broken or error.fatal()

    def produce(self, topic: str, placed: Placed, delivery: _Delivery) -> TidemillError | None:
        """Queue one message; what is returned says why it was not."""
        message = placed.message
        key = None if message.key is None else message.key.encode()
        headers: list[tuple[str, str | bytes | None]] = [
            (name, value.encode()) for name, value in message.headers.items()
        ]
        try:
            self._producer.produce(
                topic,
                message.value,
                key,
                placed.partition,
                on_delivery=delivery.report,
                headers=headers or None,
            )
        except BufferError:
            return self.troubles.unavailable("too many messages wait to be sent")
        except KafkaException as error:
            return self._refusal(reason_of(error), len(message.value))
        return None

    def retire(self) -> None:
        """Ask the thread to end the producer."""
        self._retiring.set()

    def _refusal(self, reason: KafkaError, size: int) -> TidemillError:
        if reason.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            told = f"a message has {size:,} bytes; Kafka is used up to {MESSAGE_BYTES_MAX:,}"
            return InvalidInput([Problem(path="message", message=told, code="size")])
        self.broken = self.broken or reason.fatal() or reason.code() == _FATAL
        return self.troubles.unavailable(reason)

    def _listen(self) -> None:
        while not self._retiring.is_set():
            self._producer.poll(LISTEN_SECONDS)
        if self._producer.flush(FLUSH_SECONDS):
            self._producer.purge()
            self._producer.flush(FLUSH_SECONDS)
        # The producer knows this object too; without this it would wait for the collector.
        del self._producer
        with suppress(RuntimeError):  # the loop may be closed already
            self._loop.call_soon_threadsafe(self.ended.set)


class _Delivery:
    """Counts what is still under way, over all messages of one call."""

    def __init__(self, messages: int, loop: asyncio.AbstractEventLoop) -> None:
        self.done: asyncio.Future[KafkaError | None] = loop.create_future()
        self._loop = loop
        self._lock = threading.Lock()
        self._left = messages
        self._error: KafkaError | None = None

    def report(self, error: KafkaError | None, _: KafkaMessage) -> None:
        """Hear from the producer's thread about one message."""
        self._count(1, error)

    def give_up(self, messages: int) -> None:
        """Do not wait for messages that were never queued."""
        self._count(messages, None)

    def _count(self, messages: int, error: KafkaError | None) -> None:
        with self._lock:
            self._left -= messages
            self._error = self._error or error
            finished = self._left == 0
        if finished:
            with suppress(RuntimeError):  # the loop may be closed already
                self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(self._error)


_PRODUCER_SETTINGS: Settings = {
    "enable.idempotence": True,
    "acks": "all",
    "delivery.timeout.ms": round(DELIVERY_SECONDS * 1_000),
    "linger.ms": 1,
    "message.max.bytes": MESSAGE_BYTES_MAX,
    "queue.buffering.max.messages": QUEUED_MESSAGES_MAX,
    "queue.buffering.max.kbytes": QUEUED_KILOBYTES_MAX,
    "retry.backoff.max.ms": 500,
}
