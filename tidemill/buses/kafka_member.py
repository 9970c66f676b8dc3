"""One member of a consumer group: a thread that reads when asked and rests in between."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from confluent_kafka import KafkaException
from confluent_kafka import Message as KafkaMessage

from tidemill.buses.kafka_address import KafkaAddress
from tidemill.buses.kafka_client import ended, reason_of
from tidemill.buses.kafka_reader import KafkaReader, translated
from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message

BREATH_SECONDS = 1.5
"""How long the thread waits to be asked again before it rests: resting drops what was read ahead,
and not answering the group for longer would hold up whoever joins."""

REST_SECONDS = 0.2
"""How long it waits between two rests."""

REBALANCE_WAIT_SECONDS = 0.05


class _Wish:
    """Somebody waits for messages, until there are some or the wish is dropped."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        self.limit = limit
        self.answer: asyncio.Future[None] = loop.create_future()
        self.dropped = False


class KafkaMember:
    """Shares the messages of some topics with the other members of its group."""

    def __init__(self, address: KafkaAddress, topics: Sequence[str], group: str) -> None:
        self._topics = tuple(topics)
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._closing = threading.Event()
        self._taking = asyncio.Lock()
        self._wishes: queue.SimpleQueue[_Wish | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._here: list[KafkaMessage] = []
        self._wish: _Wish | None = None
        self._reader = KafkaReader(address, f"{address.prefix}.{group}")
        threading.Thread(target=self._run, name="tidemill-kafka-member", daemon=True).start()

    async def take(self, limit: int) -> list[Message]:
        """Wait for messages; a call that is cancelled loses none of them."""
        assert limit > 0, "whoever can take nothing does not ask"
        async with self._taking:
            while not (taken := self._pick(limit)):
                await self._ask(limit)
            return [translated(message) for message in taken]

    async def close(self) -> None:
        """Leave the group; safe to call twice."""
        self._closing.set()
        self._wishes.put(None)
        await ended(self._ended, "a member of a group")

    async def _ask(self, limit: int) -> None:
        if self._closing.is_set():
            raise Unavailable("Kafka: this member has left its group")
        wish = self._wish = _Wish(limit, self._loop)
        self._wishes.put(wish)
        try:
            await wish.answer
        finally:
            wish.dropped = True
            if wish.answer.done() and not wish.answer.cancelled():
                wish.answer.exception()  # whoever gave up has no use for it

    def _pick(self, limit: int) -> list[KafkaMessage]:
        with self._lock:
            taken, self._here = self._here[:limit], self._here[limit:]
        return taken

    def _wake(self) -> None:
        # What came was perhaps read for somebody who gave up: it is for who waits now.
        if self._wish is not None and not self._wish.answer.done():
            self._wish.answer.set_result(None)

    def _refuse(self, wish: _Wish, error: Unavailable) -> None:
        if not wish.answer.done():
            wish.answer.set_exception(error)

    def _refuse_last(self) -> None:
        """Whoever asked while the thread was about to end would wait for ever."""
        if self._wish is not None:
            self._refuse(self._wish, Unavailable("Kafka: this member has left"))

    # What follows runs in the member's thread.

    def _run(self) -> None:
        patience = BREATH_SECONDS
        try:
            self._reader.join(self._topics)
            while not self._closing.is_set():
                patience = self._answer_or_rest(patience)
        finally:
            self._leave()

    def _answer_or_rest(self, patience: float) -> float:
        try:
            wish = self._wishes.get(timeout=patience)
        except queue.Empty:
            self._rest()
            return REST_SECONDS
        if wish is not None:
            self._fulfil(wish)
        return BREATH_SECONDS

    def _rest(self) -> None:
        try:
            self._reader.rest()
        except KafkaException as error:
            self._reader.troubles.note(reason_of(error))

    def _fulfil(self, wish: _Wish) -> None:
        try:
            found = self._read(wish)
        except Unavailable as error:
            self._tell(self._refuse, wish, error)
        except KafkaException as error:
            told = self._reader.troubles.unavailable(reason_of(error))
            self._tell(self._refuse, wish, told)
        else:
            if found:
                with self._lock:
                    self._here += found
                self._tell(self._wake)

    def _read(self, wish: _Wish) -> list[KafkaMessage]:
        while not wish.dropped:
            if self._closing.is_set():
                raise Unavailable("Kafka: this member leaves its group")
            found = self._reader.read(wish.limit)
            if found and wish.dropped:
                self._reader.put_back(found)
            elif found:
                if accepted := self._reader.accept(found):
                    return accepted
                self._closing.wait(REBALANCE_WAIT_SECONDS)
            elif self._reader.troubles.any:
                self._reader.check(self._topics[0])
        return []

    def _leave(self) -> None:
        with suppress(KafkaException, RuntimeError):
            self._reader.give_back(self._pick(len(self._here)))
        with suppress(KafkaException, RuntimeError):
            self._reader.close()
        self._closing.set()  # nobody asked to, when an error ended the thread
        self._tell(self._refuse_last)
        self._tell(self._ended.set)

    def _tell(self, hear: Callable[..., object], *news: object) -> None:
        with suppress(RuntimeError):  # the loop may be closed already
            self._loop.call_soon_threadsafe(hear, *news)
