"""The broker on Redis: each topic is a stream, of which the latest entries are kept.

A member of a group acknowledges entries just before it hands them out, and the answer to that
decides whose they are: an entry that a slow member still holds can be claimed by another one
without being handed out twice. Redis may forget entries, groups and all: that costs time.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, NamedTuple, Self, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff, NoBackoff
from redis.exceptions import RedisError, ResponseError

from tidemill.domain.errors import InvalidInput, Problem, Unavailable
from tidemill.ports.broker import Message

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 5.0
BLOCK_SECONDS = 5.0
RETRY_SECONDS = 0.1
CONNECTIONS_MAX = 64
BATCH_MAX = 500
KEPT_MAX = 100_000
CLAIM_EVERY_SECONDS = 5.0
CLAIM_IDLE_SECONDS = 10.0
MEMBER_FORGOTTEN_SECONDS = 3_600.0
LEAVE_SECONDS = 1.0
OPTIONS = (
    *("prefix", "kept", "db", "username", "password"),
    *("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname"),
)
PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Client: TypeAlias = Any  # the types of redis-py leave open which of its methods can be awaited
Fields: TypeAlias = Mapping[bytes, bytes]

_members = count(1)
_headers = msgspec.json.Decoder(dict[str, str])


class RedisBroker:
    """Implements ports.broker.Broker; connects when it must, and again after every loss.

    `redis://[user:password@]host[:port][/database][?prefix=tidemill&kept=100000]`, or `rediss://`
    with TLS (`&ssl_ca_certs=FILE` for a private authority); `kept` is how many messages a topic
    holds.
    """

    def __init__(self, url: str) -> None:
        place = _Place.read(url)
        self._name = place.name
        self._prefix = place.prefix
        self._kept_max = place.kept_max
        self._writer = _connect(place, Retry(ConstantBackoff(RETRY_SECONDS), 1))
        # A reader that loses its connection is told so: it may have missed something.
        self._reader = _connect(place, Retry(NoBackoff(), 0))

    async def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Append messages to the stream, which forgets its oldest ones."""
        stream = self._stream(topic)
        for begin in range(0, len(messages), BATCH_MAX):
            pipe = self._writer.pipeline(transaction=False)
            for message in messages[begin : begin + BATCH_MAX]:
                pipe.xadd(stream, _fields(message), maxlen=self._kept_max, approximate=True)
            async with _asking(self._name, ANSWER_SECONDS):
                await pipe.execute()

    @asynccontextmanager
    async def consume(self, topics: Sequence[str], group: str) -> AsyncIterator[_Member]:
        """Join a group; one that is new begins with the oldest message kept."""
        streams = [self._stream(topic) for topic in topics]
        member = _Member(self._reader, self._name, streams, group)
        try:
            yield member
        finally:
            await member.leave()

    @asynccontextmanager
    async def follow(
        self, topic: str, key: str | None = None
    ) -> AsyncIterator[AsyncIterator[Message]]:
        """See every message sent from now on, those of other keys too."""
        stream = self._stream(topic)
        async with _asking(self._name, ANSWER_SECONDS):
            last = await _last_id(self._reader, stream)
        yield self._read_on(stream, last)

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
        await self._writer.aclose()
        await self._reader.aclose()

    async def _read_on(self, stream: str, last: bytes) -> AsyncIterator[Message]:
        while True:
            async with _asking(self._name, BLOCK_SECONDS + ANSWER_SECONDS):
                answer = await self._reader.xread(
                    {stream: last}, count=BATCH_MAX, block=round(BLOCK_SECONDS * 1_000)
                )
            for entry in _entries(answer):
                last = entry.id
                yield entry.message

    def _stream(self, topic: str) -> str:
        return f"{self._prefix}.{topic}"


class _Member:
    """A consumer. Entries that it has read and not handed out yet stay pending, hence claimable.

    A `take` may be given up at any moment: what Redis had sent by then is asked for again, and an
    acknowledgement under way is waited for by the next one.
    """

    def __init__(self, client: Client, place: str, streams: Sequence[str], group: str) -> None:
        self._client = client
        self._place = place
        self._streams = list(streams)
        self._group = group
        self._name = f"{socket.gethostname()}-{os.getpid()}-{next(_members)}"
        self._in_doubt = False
        self._held: list[_Entry] = []
        self._acknowledging: asyncio.Task[list[Message]] | None = None
        self._ready: list[Message] = []
        self._claim_at = 0.0

    async def take(self, limit: int) -> list[Message]:
        """Wait for messages; acknowledge those that are returned, and only those."""
        while not self._ready:
            if not self._held and self._acknowledging is None:
                self._held = await self._read(limit)
            if self._held or self._acknowledging is not None:
                await self._acknowledge(limit)
        taken, self._ready = self._ready[:limit], self._ready[limit:]
        return taken

    async def leave(self) -> None:
        """Take the name off the group, unless entries are pending under it."""
        if self._acknowledging is not None:
            await asyncio.gather(self._acknowledging, return_exceptions=True)
        with suppress(RedisError, OSError):
            async with asyncio.timeout(LEAVE_SECONDS):
                for stream in self._streams:
                    await self._forget_idle(stream, seconds=0, name=self._name.encode())

    async def _read(self, limit: int) -> list[_Entry]:
        in_doubt, self._in_doubt = self._in_doubt, True
        async with _asking(self._place, BLOCK_SECONDS + ANSWER_SECONDS):
            try:
                entries = await self._claim() or await self._ask(limit, again=in_doubt)
            except ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
                await self._create_groups()
                entries = []
        # When entries came again there may be more of them.
        self._in_doubt = in_doubt and bool(entries)
        return entries

    async def _ask(self, limit: int, *, again: bool) -> list[_Entry]:
        """New entries, or `again` what was sent to this member and may not have arrived."""
        self._streams.append(self._streams.pop(0))  # the topics take turns in coming first
        answer = await self._client.xreadgroup(
            self._group,
            self._name,
            dict.fromkeys(self._streams, "0" if again else ">"),
            count=max(1, min(limit, BATCH_MAX) // len(self._streams)),
            block=None if again else round(BLOCK_SECONDS * 1_000),
        )
        return _entries(answer)

    async def _acknowledge(self, limit: int) -> None:
        if self._acknowledging is None:
            chosen, self._held = self._held[:limit], self._held[limit:]
            self._acknowledging = asyncio.create_task(self._settle(chosen))
        await asyncio.wait({self._acknowledging})
        settled, self._acknowledging = self._acknowledging, None
        self._ready += settled.result()

    async def _settle(self, entries: Sequence[_Entry]) -> list[Message]:
        pipe = self._client.pipeline(transaction=False)
        for entry in entries:
            pipe.xack(entry.stream, self._group, entry.id)
        async with _asking(self._place, ANSWER_SECONDS):
            answers = await pipe.execute()
        return [entry.message for entry, mine in zip(entries, answers, strict=True) if mine]

    async def _claim(self) -> list[_Entry]:
        """Entries that a member had read, and died or forgot to hand out."""
        now = asyncio.get_running_loop().time()
        if now < self._claim_at:
            return []
        self._claim_at = now + CLAIM_EVERY_SECONDS
        claimed: list[_Entry] = []
        for stream in self._streams:
            _, entries, *_ = await self._client.xautoclaim(
                stream,
                self._group,
                self._name,
                round(CLAIM_IDLE_SECONDS * 1_000),
                count=BATCH_MAX,
            )
            claimed += _entries([(stream.encode(), entries)])
            await self._forget_idle(stream, MEMBER_FORGOTTEN_SECONDS)
        return claimed

    async def _forget_idle(self, stream: str, seconds: float, name: bytes | None = None) -> None:
        for member in await self._client.xinfo_consumers(stream, self._group):
            idle = member["idle"] >= seconds * 1_000 and name in {None, member["name"]}
            if idle and not member["pending"]:
                await self._client.xgroup_delconsumer(stream, self._group, member["name"])

    async def _create_groups(self) -> None:
        for stream in self._streams:
            try:
                await self._client.xgroup_create(stream, self._group, id="0", mkstream=True)
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise


class _Entry(NamedTuple):
    stream: str
    id: bytes
    message: Message


class _Place(NamedTuple):
    """An address taken apart; `name` is what may be said about it."""

    url: str
    name: str
    prefix: str
    kept_max: int

    @classmethod
    def read(cls, url: str) -> Self:
        try:
            parts = urlsplit(url)
            port = parts.port or 6379
        except ValueError:
            raise _wrong("the port of an address is a number up to 65535") from None
        options = dict(parse_qsl(parts.query))
        prefix = options.pop("prefix", "tidemill")
        kept = options.pop("kept", str(KEPT_MAX))
        if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
            raise _wrong("an address of Redis begins with redis:// or rediss://, then the host")
        if not PREFIX.fullmatch(prefix):
            raise _wrong("prefix: letters, digits, '.', '_' and '-', at most 100 of them")
        if not kept.isascii() or not kept.isdigit() or not 0 < int(kept) <= 10**9:
            raise _wrong("kept: a number of messages, at least 1")
        if not re.fullmatch(r"/?[0-9]{0,4}", parts.path):
            raise _wrong("the path of a redis:// address is the number of a database; see ?prefix=")
        for name in options:
            if name not in OPTIONS:
                raise _wrong(f"{name}: is not an option; there are {', '.join(OPTIONS)}")
            if name.startswith("ssl_") and parts.scheme == "redis":
                raise _wrong(f"{name}: is for rediss://, which uses TLS")
        plain = parts._replace(query=urlencode(options)).geturl()
        return cls(plain, f"{parts.hostname}:{port}", prefix, int(kept))


def _connect(place: _Place, retry: Retry) -> Client:
    # No socket_timeout: redis-py keeps it by asyncio.wait_for, which may swallow a cancellation
    # on Python 3.11. Time is kept by _asking.
    try:
        return Redis.from_url(
            place.url,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=None,
            retry=retry,
            max_connections=CONNECTIONS_MAX,
            protocol=2,
        )
    except (TypeError, ValueError) as error:
        raise _wrong("an option of the address is not known, or its value is wrong") from error


def _wrong(message: str) -> InvalidInput:
    return InvalidInput([Problem(path="bus", message=message, code="address")])


@asynccontextmanager
async def _asking(place: str, seconds: float) -> AsyncIterator[None]:
    """Whatever Redis refuses is a matter of time: it is full, loads, fails over or is away."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise Unavailable(f"Redis at {place}: no answer within {seconds:g} s") from error
    except (RedisError, OSError) as error:
        raise Unavailable(f"Redis at {place}: {str(error) or type(error).__name__}") from error


async def _last_id(client: Client, stream: str) -> bytes:
    try:
        return bytes((await client.xinfo_stream(stream))["last-generated-id"])
    except ResponseError:
        return b"0-0"  # there is no such stream yet


def _fields(message: Message) -> dict[str, bytes | str]:
    fields: dict[str, bytes | str] = {"value": message.value}
    if message.key is not None:
        fields["key"] = message.key
    if message.headers:
        fields["headers"] = msgspec.json.encode(message.headers)
    return fields


def _entries(answer: Sequence[tuple[bytes, Sequence[tuple[bytes, Fields]]]]) -> list[_Entry]:
    return [
        _Entry(stream.decode(), entry_id, _message(fields))
        for stream, entries in answer or ()
        for entry_id, fields in entries
        if entry_id is not None and fields is not None  # claimed, but forgotten in the meantime
    ]


def _message(fields: Fields) -> Message:
    """An entry that somebody else wrote has no value: its first field stands for it."""
    key = fields.get(b"key")
    return Message(
        value=fields.get(b"value", next(iter(fields.values()), b"")),
        key=None if key is None else key.decode(errors="replace"),
        headers=_read_headers(fields.get(b"headers", b"{}")),
    )


def _read_headers(data: bytes) -> dict[str, str]:
    try:
        return _headers.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
