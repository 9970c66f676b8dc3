"""The bus on PostgreSQL: LISTEN and NOTIFY, for those who run no broker.

Whoever listens hears; nothing is kept for those who come later. Each schema has channels of its
own. One connection sends; every follower listens on one of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeAlias, TypeVar

import asyncpg
import msgspec

from tidemill.buses.hints import HintSender, decode_hint, patient_hints, wait_at_most
from tidemill.buses.mailbox import Mailbox
from tidemill.buses.notifications import Unfolding, fold
from tidemill.buses.reading import events_of, read
from tidemill.domain.errors import InvalidInput, Problem, Unavailable
from tidemill.domain.urls import mask_url
from tidemill.ports.broker import DEAD_LETTERS, Message
from tidemill.ports.bus import Event, Hint
from tidemill.protocol.cloud_events import MalformedEvent, encode_event

EVENTS = "events"
HINTS = "hints"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 5.0
CLOSE_SECONDS = 1.0
PROBE_SECONDS = 15.0
QUEUED_MAX = 10_000
CHANNEL_BYTES_MAX = 63

NOTIFY = "SELECT pg_notify($1, payload) FROM unnest($2::TEXT[]) AS payload"

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
T = TypeVar("T")
_messages = msgspec.json.Decoder(Message)
_LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class PostgresBus:
    """Implements ports.bus.Bus; connects when it must, and again after every loss."""

    def __init__(self, dsn: str, *, schema: str | None = None) -> None:
        self._dsn = dsn
        self._schema = schema
        self._sending = asyncio.Lock()
        self._connection: Connection | None = None
        self._sender = HintSender(lambda hints: self._notify(HINTS, hints))

    async def publish(self, events: Sequence[Event]) -> None:
        """Notify whoever listens right now, all or none."""
        await self._notify(EVENTS, [encode_event(event) for event in events])

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
        """Follow the hints sent from now on, through losses of the connection."""
        async with patient_hints(lambda: self._following(HINTS, decode_hint)) as hints:
            yield hints

    async def set_aside(self, message: Message) -> None:
        """Notify whoever looks at dead letters; in the outbox they stay until retention."""
        await self._notify(DEAD_LETTERS, [msgspec.json.encode(message)])

    @asynccontextmanager
    async def set_aside_messages(self) -> AsyncIterator[AsyncIterator[Message]]:
        """Follow what is set aside from now on."""
        async with self._following(DEAD_LETTERS, _decode_message) as messages:
            yield messages

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
        await self._sender.close()
        async with self._sending:
            await self._hang_up()

    # Sending

    async def _notify(self, channel: str, messages: Sequence[bytes]) -> None:
        payloads = list(fold(messages))
        if not payloads:
            return
        async with self._sending:
            try:
                with _mapped_errors(self._dsn):
                    connection = await self._line()
                    name = await self._channel(connection, channel)
                    await connection.execute(NOTIFY, name, payloads)
            except BaseException:
                await self._hang_up()
                raise

    async def _line(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await _connect(self._dsn, self._schema)
        return self._connection

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await _disconnect(connection)

    async def _channel(self, connection: Connection, name: str) -> str:
        if self._schema is None:
            self._schema = await connection.fetchval("SELECT current_schema()") or "public"
        return channel_name(self._schema, name)

    # Listening

    @asynccontextmanager
    async def _following(
        self, channel: str, decode: Callable[[bytes], T | None]
    ) -> AsyncIterator[AsyncIterator[T]]:
        mailbox: Mailbox[Message] = Mailbox(QUEUED_MAX)
        with _mapped_errors(self._dsn):
            connection = await _connect(self._dsn, self._schema)
        try:
            with _mapped_errors(self._dsn):
                await self._listen(connection, channel, mailbox)
            async with _probing(connection):
                yield read(mailbox, decode, self.set_aside, channel)
        finally:
            await _disconnect(connection)

    async def _listen(
        self, connection: Connection, channel: str, mailbox: Mailbox[Message]
    ) -> None:
        unfolding = Unfolding(mailbox)

        def hear(_connection: object, _pid: int, _channel: str, payload: object) -> None:
            unfolding.hear(str(payload))

        def lose(_connection: object) -> None:
            mailbox.end(Unavailable(f"PostgreSQL at {mask_url(self._dsn)}: the connection is lost"))

        connection.add_termination_listener(lose)
        await connection.add_listener(await self._channel(connection, channel), hear)


def channel_name(schema: str, name: str) -> str:
    """The channel of a schema; names of channels have 63 bytes at most."""
    channel = f"tidemill.{schema}.{name}"
    if len(channel.encode()) <= CHANNEL_BYTES_MAX:
        return channel
    return f"tidemill.{hashlib.sha256(schema.encode()).hexdigest()[:32]}.{name}"


async def _connect(dsn: str, schema: str | None) -> Connection:
    settings = {"application_name": "tidemill bus"}
    if schema is not None:
        settings["search_path"] = schema
    return await asyncpg.connect(
        dsn, timeout=CONNECT_SECONDS, command_timeout=ANSWER_SECONDS, server_settings=settings
    )


async def _disconnect(connection: Connection) -> None:
    with suppress(*_LOST):
        await connection.close(timeout=CLOSE_SECONDS)


@asynccontextmanager
async def _probing(connection: Connection) -> AsyncIterator[None]:
    """Ask now and then: a network that swallows packets does not end a connection by itself."""
    probing = asyncio.create_task(_probe(connection))
    try:
        yield
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)


async def _probe(connection: Connection) -> None:
    never = asyncio.Event()
    try:
        while True:
            await wait_at_most(never, PROBE_SECONDS)
            await connection.execute("SELECT 1")
    except _LOST:
        connection.terminate()


@contextmanager
def _mapped_errors(dsn: str) -> Iterator[None]:
    try:
        yield
    except _LOST as error:
        if isinstance(error, ValueError):  # an address that cannot be read, and may be in the text
            raise _wrong_address(dsn) from None
        text = str(error) or type(error).__name__
        raise Unavailable(f"PostgreSQL at {mask_url(dsn)}: {text}") from error
    except ValueError:
        raise _wrong_address(dsn) from None


def _wrong_address(dsn: str) -> InvalidInput:
    message = f"{mask_url(dsn)} is not an address of PostgreSQL"
    return InvalidInput([Problem(path="bus", message=message, code="address")])


def _decode_message(data: bytes) -> Message:
    try:
        return _messages.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(f"not a message: {error}") from error
