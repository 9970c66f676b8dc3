"""What becomes of messages that nobody can read, or that nobody may."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from tidemill.domain.errors import TidemillError
from tidemill.ports.broker import DEAD_LETTERS, Broker, Message
from tidemill.protocol.cloud_events import MalformedEvent

log = logging.getLogger(__name__)

REASON_CHARACTERS_MAX = 500

T = TypeVar("T")
Read: TypeAlias = list[tuple[Message, T]]
"""Messages and what they say."""


def dead_letter(message: Message, source: str, reason: str) -> Message:
    """The same bytes under the same key, with a word on where they were found and why."""
    words = {"source": source, "reason": reason[:REASON_CHARACTERS_MAX]}
    return Message(value=message.value, key=message.key, headers={**message.headers, **words})


class Sorter:
    """Reads messages of a topic; those that cannot be read go to the dead letters, as they are."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def read(
        self, topic: str, messages: Sequence[Message], decode: Callable[[bytes], T | None]
    ) -> Read[T]:
        """What can be read, in the order of the messages; None, of another type, is left out."""
        values: Read[T] = []
        for message in messages:
            try:
                value = decode(message.value)
            except MalformedEvent as error:
                await self.set_aside(topic, message, str(error))
            else:
                if value is not None:
                    values.append((message, value))
        return values

    async def set_aside(self, topic: str, message: Message, reason: str) -> None:
        """Put a message to the dead letters, its bytes unchanged, with where and why."""
        log.warning("a message on %s is set aside: %s", topic, reason)
        try:
            await self._broker.send(DEAD_LETTERS, [dead_letter(message, topic, reason)])
        except TidemillError as error:  # out of reach, or too large for another header
            log.warning("it could not be kept: %s", error)
