"""The bus on any broker: events as CloudEvents keyed by run id, hints, and what nobody can read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from tidemill.buses.hints import HintSender, decode_hint, patient_hints
from tidemill.buses.reading import events_of, read
from tidemill.ports.broker import DEAD_LETTERS, Broker, Message
from tidemill.ports.bus import Event, Hint
from tidemill.protocol.cloud_events import MEDIA_TYPE, encode_event

EVENTS = "events"
HINTS = "hints"

T = TypeVar("T")


class BrokerBus:
    """Implements ports.bus.Bus; the broker is closed together with it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sender = HintSender(self._send_hints)

    async def publish(self, events: Sequence[Event]) -> None:
        """Append events to their topic; those of one run stay in order."""
        if events:
            await self._broker.send(EVENTS, [_message_of(event) for event in events])

    @asynccontextmanager
    async def subscribe(self, namespace: str | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        """Follow the events published from now on, all or those of one namespace."""
        async with self._following(EVENTS, events_of(namespace)) as events:
            yield events

    async def send_hint(self, hint: Hint) -> None:
        """Leave a hint with the sender, which has a task of its own."""
        self._sender.put(hint)

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[Hint]]:
        """Follow the hints sent from now on, through losses of the broker."""
        async with patient_hints(lambda: self._following(HINTS, decode_hint)) as hints:
            yield hints

    async def set_aside(self, message: Message) -> None:
        """Append it to the topic of dead letters."""
        await self._broker.send(DEAD_LETTERS, [message])

    @asynccontextmanager
    async def set_aside_messages(self) -> AsyncIterator[AsyncIterator[Message]]:
        """Follow the topic of dead letters."""
        async with self._broker.follow(DEAD_LETTERS) as messages:
            yield messages

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
        await self._sender.close()
        await self._broker.close()

    @asynccontextmanager
    async def _following(
        self, topic: str, decode: Callable[[bytes], T | None]
    ) -> AsyncIterator[AsyncIterator[T]]:
        async with self._broker.follow(topic) as messages:
            yield read(messages, decode, self.set_aside, topic)

    async def _send_hints(self, hints: Sequence[bytes]) -> None:
        await self._broker.send(HINTS, [Message(value=hint) for hint in hints])


def _message_of(event: Event) -> Message:
    return Message(
        value=encode_event(event), key=event.fact.run_id, headers={"content-type": MEDIA_TYPE}
    )
