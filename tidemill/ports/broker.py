"""The message broker, as the parts that talk over topics see it.

A broker hurries and carries; it never decides. Whatever is sent may be lost, doubled or late, and
whoever needs an answer repeats the question. Messages are bytes: who reads them decodes them, and
sets aside in the dead-letter topic what cannot be read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

DEAD_LETTERS = "dead"
"""The topic of messages that nobody could read."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message. Those of a topic with the same key arrive in the order of sending."""

    value: bytes
    key: str | None = None
    headers: Mapping[str, str] = {}


class Consumer(Protocol):
    """One member of a group that shares the messages of some topics."""

    async def take(self, limit: int) -> list[Message]:
        """Wait for messages; return up to `limit`, marked as delivered before they are returned.

        A member that dies with messages in hand takes them along, and a message may still be
        delivered twice when members come and go: neither loses nor doubles any work, because the
        store decides. Unavailable when the broker cannot be reached.
        """


class Broker(Protocol):
    """Topics by short names; the implementation adds its prefix and creates them when needed."""

    async def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Append messages; return when the broker has them, Unavailable when it does not."""

    def consume(self, topics: Sequence[str], group: str) -> AbstractAsyncContextManager[Consumer]:
        """Join a group: each message goes to one member. What nobody has read yet is kept."""

    def follow(
        self, topic: str, key: str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Message]]:
        """See every message sent from now on, beside whoever else follows.

        With a key, only the part of the topic in which messages of that key travel, which may
        hold those of other keys too. A slow follower loses the oldest messages. Ends with
        Unavailable when the broker is lost.
        """

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
