"""From messages to values; what cannot be read is set aside, and the rest goes on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Message
from tidemill.ports.bus import Event
from tidemill.protocol.cloud_events import MalformedEvent, decode_event
from tidemill.protocol.unreadable import dead_letter

log = logging.getLogger(__name__)

T = TypeVar("T")
SetAside = Callable[[Message], Awaitable[None]]


async def read(
    messages: AsyncIterator[Message],
    decode: Callable[[bytes], T | None],
    set_aside: SetAside,
    source: str,
) -> AsyncIterator[T]:
    """What the messages say; None, which stands for nothing of interest, is passed over."""
    async for message in messages:
        try:
            value = decode(message.value)
        except MalformedEvent as error:
            await _set_aside(set_aside, dead_letter(message, source, str(error)))
        else:
            if value is not None:
                yield value


def events_of(namespace: str | None) -> Callable[[bytes], Event | None]:
    """A decoder of events: all of them, or those of one namespace."""

    def decode(data: bytes) -> Event | None:
        event = decode_event(data)
        return event if event and namespace in {None, event.fact.namespace} else None

    return decode


async def _set_aside(set_aside: SetAside, message: Message) -> None:
    log.warning("a message on %s is set aside: %s", *map(message.headers.get, ("source", "reason")))
    try:
        await set_aside(message)
    except Unavailable as error:
        log.warning("it could not be kept: %s", error)
