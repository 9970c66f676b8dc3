"""The bus, as roles see it: it hurries, it never decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import Lane, RunId
from tidemill.ports.broker import Message


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """Something moved: look at these runs and lanes now instead of at the next poll."""

    runs: tuple[RunId, ...] = ()
    lanes: tuple[Lane, ...] = ()
    missed: bool = False  # earlier ones may be lost: look everywhere


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A fact on its way to the world. `id` is the same each time the fact is published."""

    id: str
    position: int
    fact: Fact


class Bus(Protocol):
    """Carries events to whoever subscribed, and hints between schedulers. Both may be lost."""

    async def publish(self, events: Sequence[Event]) -> None:
        """Hand over events, in order per run; Unavailable when the bus cannot take them."""

    def subscribe(
        self, namespace: str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Follow the events published from now on, all or those of one namespace.

        A slow subscriber loses the oldest ones. Ends with Unavailable when the bus is lost: who
        subscribes again has missed what was published in between.
        """

    async def send_hint(self, hint: Hint) -> None:
        """Wake the schedulers. Never raises or waits: a lost hint costs one poll interval."""

    def hints(self) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """Follow the hints sent from now on, by anyone.

        Falls silent while the bus is lost; the first one after that says that others are missing.
        """

    async def set_aside(self, message: Message) -> None:
        """Keep what nobody can read, byte for byte, where people look for it.

        The headers say where it was found (`source`) and what is wrong with it (`reason`).
        Unavailable when the bus cannot take it.
        """

    def set_aside_messages(self) -> AbstractAsyncContextManager[AsyncIterator[Message]]:
        """Follow what is set aside from now on."""

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
