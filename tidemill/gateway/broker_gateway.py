"""The door over a broker: carries heartbeats, reports, commands and answers; decides nothing."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from tidemill.domain.errors import TidemillError, Unavailable
from tidemill.ports.broker import Broker, Message
from tidemill.ports.clock import Clock
from tidemill.protocol.broker_door import BrokerDoor, Letter
from tidemill.protocol.broker_messages import (
    HEARTBEATS,
    REPORTS,
    SCHEDULERS,
    Beat,
    BrokerMessage,
    Command,
    Heartbeat,
    Marker,
    Report,
    decode_beat,
    decode_report,
    encode,
)
from tidemill.protocol.cloud_events import MEDIA_TYPE
from tidemill.protocol.unreadable import Read, Sorter

log = logging.getLogger(__name__)

MARK_SECONDS = 1.0
RETRY_SECONDS = 0.5
SETTLE_SECONDS = 1.5
"""How long heartbeats are listened to before reports are taken: then their workers are known."""

LATE_MARKS = 2
"""A marker that is older than so many others says nothing about now."""

LETTERS_MAX = 10_000
"""For one topic, while others are under way; of more than that the oldest are not sent."""

REPORTS_MAX = 250
SEND_SECONDS = 6.0
"""How long a command is tried, but for the last try: soon after, its grant goes back by itself."""

HEADERS = {"content-type": MEDIA_TYPE}


class BrokerGateway:
    """Connects a scheduler to the workers behind one broker."""

    def __init__(self, door: BrokerDoor, broker: Broker, clock: Clock) -> None:
        self._door = door
        self._broker = broker
        self._clock = clock
        self._sorter = Sorter(broker)
        self._marks = 0

    async def run(self) -> None:
        """Carry messages until cancelled, however often the broker is lost meanwhile."""
        async with asyncio.TaskGroup() as duties:
            duties.create_task(self._forever(self._follow_heartbeats))
            duties.create_task(self._forever(self._mark))
            duties.create_task(self._forever(self._consume_reports))
            duties.create_task(self._forever(self._send_letters))

    async def _forever(self, duty: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await duty()
            except Unavailable as error:
                log.warning("the broker is lost (%s): %s", _name(duty), error)
            except Exception:
                log.exception("to %s failed and begins anew", _name(duty))
            await self._clock.sleep(RETRY_SECONDS)

    async def _follow_heartbeats(self) -> None:
        try:
            async with self._broker.follow(HEARTBEATS) as messages:
                await self._hear(messages)
        finally:
            self._door.lose_sight()

    async def _hear(self, messages: AsyncIterator[Message]) -> None:
        async for message in messages:
            beats: Read[Beat] = await self._sorter.read(HEARTBEATS, [message], decode_beat)
            for _, beat in beats:
                if isinstance(beat, Heartbeat):
                    self._door.hear(beat)
                elif beat.scheduler == self._door.name and beat.number >= self._marks - LATE_MARKS:
                    self._door.marker_came_back()

    async def _mark(self) -> None:
        while True:
            self._marks += 1
            marker = Marker(scheduler=self._door.name, number=self._marks)
            await self._broker.send(HEARTBEATS, [self._message(marker, self._door.name)])
            await self._clock.sleep(MARK_SECONDS)

    async def _consume_reports(self) -> None:
        await self._clock.sleep(SETTLE_SECONDS)
        async with self._broker.consume([REPORTS], SCHEDULERS) as consumer:
            while True:
                await self._receive(await consumer.take(REPORTS_MAX))

    async def _receive(self, messages: Sequence[Message]) -> None:
        read: Read[Report] = await self._sorter.read(REPORTS, messages, decode_report)
        reports = []
        for message, report in read:
            refusal = self._door.refusal(report)
            if refusal is None:
                reports.append(report)
            else:
                await self._sorter.set_aside(REPORTS, message, refusal)
        await self._door.receive(reports)

    async def _send_letters(self) -> None:
        """Topics wait for themselves alone: one that takes nothing holds no other up."""
        unsent: dict[str, deque[Letter]] = {}
        async with asyncio.TaskGroup() as sending:
            while True:
                letters = await self._door.letters()
                for topic in dict.fromkeys(one.topic for one in letters if one.topic not in unsent):
                    unsent[topic] = deque(maxlen=LETTERS_MAX)
                    sending.create_task(self._send_all(topic, unsent))
                for letter in letters:
                    unsent[letter.topic].append(letter)

    async def _send_all(self, topic: str, unsent: dict[str, deque[Letter]]) -> None:
        """Send what there is for a topic, and what is added meanwhile."""
        while letters := list(unsent[topic]):
            unsent[topic].clear()
            await self._send(topic, letters)
        del unsent[topic]

    async def _send(self, topic: str, letters: Sequence[Letter]) -> None:
        """Answers are asked for again; commands are tried for as long as they make sense."""
        messages = [self._message(letter.message, letter.key) for letter in letters]
        seconds = SEND_SECONDS if isinstance(letters[0].message, Command) else 0.0
        until = self._clock.monotonic() + seconds
        while True:
            try:
                await self._broker.send(topic, messages)
            except TidemillError as error:
                log.warning("%d messages for %s are not sent: %s", len(messages), topic, error)
                if not isinstance(error, Unavailable):
                    return  # nor would they be later
            else:
                return
            await self._clock.sleep(RETRY_SECONDS)
            if self._clock.monotonic() >= until:
                return

    def _message(self, message: BrokerMessage, key: str | None) -> Message:
        return Message(value=encode(message, self._clock.now()), key=key, headers=HEADERS)


def _name(duty: Callable[[], Awaitable[None]]) -> str:
    """What a duty is called among people: `consume reports`."""
    return getattr(duty, "__name__", "serve").strip("_").replace("_", " ")
