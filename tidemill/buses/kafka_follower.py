"""One follower of a topic: a thread that reads along from the end, outside of any group."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from confluent_kafka import KafkaException

from tidemill.buses.kafka_address import KafkaAddress
from tidemill.buses.kafka_client import ended, reason_of
from tidemill.buses.kafka_reader import KafkaReader, translated
from tidemill.buses.mailbox import Mailbox
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message

BATCH_MAX = 500
LOOK_AROUND_SECONDS = 30.0
"""How often a follower looks whether the topic has got more partitions."""


class KafkaFollower:
    """Puts what is sent to some partitions of a topic into a mailbox, until it is closed."""

    def __init__(self, address: KafkaAddress, topic: str, unread_max: int) -> None:
        self.unread: Mailbox[Message] = Mailbox(unread_max)
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._closing = threading.Event()
        self._reader = KafkaReader(address, None)

    async def start(self, partitions: Sequence[int], count: int) -> None:
        """Return when nothing that is sent from now on can be missed; Unavailable otherwise.

        `count` is how many partitions the topic has: when that changes the follower ends, because
        keys may travel elsewhere then.
        """
        ready: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(
            target=self._run,
            args=(partitions, count, ready),
            name="tidemill-kafka-follower",
            daemon=True,
        ).start()
        await ready

    async def close(self) -> None:
        """End the thread; safe to call twice."""
        self._closing.set()
        await ended(self._ended, "a follower")

    def _put_all(self, messages: list[Message]) -> None:
        for message in messages:
            self.unread.put(message)

    # What follows runs in the follower's thread.

    def _run(self, partitions: Sequence[int], count: int, ready: asyncio.Future[None]) -> None:
        try:
            self._reader.stand_at_end(self._topic, partitions)
            self._tell(_settle, ready, None)
            self._follow(count)
        except Unavailable as error:
            self._end(ready, error)
        except KafkaException as error:
            self._end(ready, self._reader.troubles.unavailable(reason_of(error)))
        finally:
            with suppress(KafkaException, RuntimeError):
                self._reader.close()
            # Whatever ended the thread: nobody must wait for more.
            self._end(ready, Unavailable("Kafka: this follower has ended"))
            self._tell(self._ended.set)

    def _follow(self, count: int) -> None:
        looked_at = self._loop.time()
        while not self._closing.is_set():
            found = self._reader.read(BATCH_MAX)
            if found:
                self._tell(self._put_all, [translated(message) for message in found])
            troubled = not found and self._reader.troubles.any
            if troubled or self._loop.time() - looked_at > LOOK_AROUND_SECONDS:
                looked_at = self._loop.time()
                if self._reader.check(self._topic) != count:
                    raise self._reader.troubles.unavailable(f"{self._topic} has changed")

    def _end(self, ready: asyncio.Future[None], error: Unavailable) -> None:
        self._tell(_settle, ready, error)
        self._tell(self.unread.end, error)

    def _tell(self, hear: Callable[..., object], *news: object) -> None:
        with suppress(RuntimeError):  # the loop may be closed already
            self._loop.call_soon_threadsafe(hear, *news)


def _settle(ready: asyncio.Future[None], error: Exception | None) -> None:
    if ready.done():
        return
    if error is None:
        ready.set_result(None)
    else:
        ready.set_exception(error)
