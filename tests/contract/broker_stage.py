"""Brokers to test, and what tests of brokers do again and again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import count
from typing import TypeVar

from tidemill.domain.errors import Unavailable
from tidemill.ports.broker import Broker, Consumer, Message

PATIENCE_SECONDS = 40
T = TypeVar("T")
_prefixes = count(1)


def fresh_prefix() -> str:
    """Topics that no other test uses."""
    return f"test-{os.getpid()}-{next(_prefixes)}"


def numbered(count: int, *, key: str | None = None, begin: int = 0) -> list[Message]:
    """Messages that tell each other apart."""
    return [Message(value=b"%d" % number, key=key) for number in range(begin, begin + count)]


def numbers_in(messages: Sequence[Message]) -> list[int]:
    """What `numbered` wrote."""
    return [int(message.value) for message in messages]


async def take_all(member: Consumer, count: int, limit: int = 50) -> list[Message]:
    """Ask until there are as many messages; what comes beyond is returned too."""
    taken: list[Message] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(taken) < count:
            taken += await member.take(limit)
    return taken


async def share_all(members: Sequence[Consumer], count: int) -> list[list[Message]]:
    """Let members take side by side until they have as many messages together."""
    taken: list[list[Message]] = [[] for _ in members]
    if count <= 0:
        return taken
    complete = asyncio.Event()

    async def go_on(number: int) -> None:
        while True:
            taken[number] += await members[number].take(5)
            if sum(map(len, taken)) >= count:
                complete.set()
            await asyncio.sleep(0)  # the others are hungry too

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        tasks = [group.create_task(go_on(number)) for number in range(len(members))]
        await complete.wait()
        for task in tasks:
            task.cancel()
    return taken


async def joined(broker: Broker, stack: AsyncExitStack, topic: str, group: str) -> list[Consumer]:
    """Two members of a group, each of which has been given something: nobody moves any more."""
    members = [await stack.enter_async_context(broker.consume([topic], group)) for _ in range(2)]
    busy: set[int] = set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(busy) < len(members):
            await broker.send(topic, numbered(20))
            shares = await share_all(members, 20)
            busy |= {number for number, share in enumerate(shares) if share}
    return members


async def next_of(messages: AsyncIterator[Message], count: int) -> list[Message]:
    """The next messages that a follower sees."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [await anext(messages) for _ in range(count)]


async def eventually(attempt: Callable[[], Awaitable[T]]) -> T:
    """Try again while the broker is not there."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await attempt()
            except Unavailable:
                await asyncio.sleep(0.1)
