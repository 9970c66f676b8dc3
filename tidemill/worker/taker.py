"""Takes commands from the broker, as many as there are free slots.

A member of a group may be given what others have room for: brokers hand out parts of a topic, not
messages. What does not fit here is passed on, into another part of the topic by chance.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import Token
from tidemill.domain.pools import PoolKey
from tidemill.ports.broker import Broker, Message
from tidemill.ports.clock import Clock
from tidemill.protocol.broker_codec import assignment_of
from tidemill.protocol.broker_messages import Command, decode_command
from tidemill.protocol.unreadable import Read, Sorter
from tidemill.worker.crew import Crew
from tidemill.worker.hand import Hand, InHand

_log = logging.getLogger("tidemill.worker")

HOPS = "hops"
"""The header that counts how often a command was passed on."""

HOPS_MAX = 30
ALONE_HOPS = 5
"""So often a suspect looks for an idle worker before a busy one keeps itself free for it."""

STRANGE_HOPS = 10
"""So often a command is passed on at once that this worker does not offer to run."""

PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 1.0


class Taker:
    """One member of the group that serves a pool."""

    def __init__(self, crew: Crew, hand: Hand, broker: Broker, clock: Clock, key: PoolKey) -> None:
        self._crew = crew
        self._hand = hand
        self._broker = broker
        self._clock = clock
        self._key = key
        self._sorter = Sorter(broker)
        self._opened = asyncio.Event()
        self._room = asyncio.Event()
        self._running_alone: Token | None = None

    @property
    def alone(self) -> bool:
        """Whether a suspect has the worker to itself, or waits for that."""
        return self._hand.alone is not None or self._running_alone is not None

    @property
    def wanted(self) -> int:
        """How many commands there is room for."""
        return 0 if self.alone else max(0, self._crew.slots.free - len(self._hand))

    def open(self) -> None:
        """The session is open: begin to take."""
        self._opened.set()

    def begin(self, command: InHand) -> None:
        """Run what was bound."""
        if command.alone:
            self._running_alone = command.assignment.token
        self._crew.take([command.assignment])

    def look(self) -> None:
        """Something may have ended: there may be room again."""
        running = {attempt.token for attempt in self._crew.attempts}
        if self._running_alone not in running:
            self._running_alone = None
        if self.wanted:
            self._room.set()

    async def run(self) -> None:
        """Take commands until cancelled."""
        await self._opened.wait()
        topic = self._key.topic
        async with self._broker.consume([topic], topic) as consumer:
            while True:
                messages = await consumer.take(max(1, self.wanted))
                read: Read[Command] = await self._sorter.read(topic, messages, decode_command)
                for message, command in read:
                    await self._accept(topic, message, command)

    async def _accept(self, topic: str, message: Message, command: Command) -> None:
        if command.namespace != self._key.namespace:
            reason = f"a command of namespace {command.namespace} on the topic of another one"
            await self._sorter.set_aside(topic, message, reason)
            return
        assignment = assignment_of(command)
        if assignment.token in self._hand or assignment.token in self._crew.held:
            return  # delivered twice
        hops = _hops_of(message)
        if not self._crew.can_run(assignment):
            await self._pass_on_strange(topic, message, hops)
        elif await self._has_room(command, hops):
            self._hand.put(assignment, command.alone, self._clock.monotonic())
            self._crew.changed.set()
        elif hops < HOPS_MAX:
            await self._pass_on(topic, message, hops)

    async def _pass_on_strange(self, topic: str, message: Message, hops: int) -> None:
        """Leave to others what this worker does not offer, soon without haste.

        They were heard of when the command was sent. When none of them is met the command is let
        go, and its grant goes back by itself: nothing circles for longer than the start bound.
        """
        if hops >= HOPS_MAX:
            return
        if hops >= STRANGE_HOPS:
            await self._clock.sleep(PAUSE_SECONDS)
        await self._pass_on(topic, message, hops)

    async def _has_room(self, command: Command, hops: int) -> bool:
        if command.alone and hops < ALONE_HOPS:
            return self.wanted > 0 and not self._crew.attempts and not self._hand
        if self.wanted == 0 and hops:
            self._room.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_pause(hops)):
                    await self._room.wait()
        return self.wanted > 0

    async def _pass_on(self, topic: str, message: Message, hops: int) -> None:
        headers = {**message.headers, HOPS: str(hops + 1)}
        try:
            await self._broker.send(topic, [Message(value=message.value, headers=headers)])
        except Unavailable as error:
            # Its grant goes back by itself; what else was taken with it is not lost.
            _log.warning("a command could not be passed on: %s", error)


def _hops_of(message: Message) -> int:
    text = message.headers.get(HOPS, "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0


def _pause(hops: int) -> float:
    return min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * float(1 << min(hops, 10)))
