"""Hints on their way: out through a small queue that never holds a turn up, in with patience."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import msgspec

from tidemill.buses.mailbox import Mailbox
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import Lane, RunId
from tidemill.ports.bus import Hint
from tidemill.protocol.cloud_events import MalformedEvent

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.005
"""Hints of that time travel together; the first one after a silence does not wait."""

RETRY_SECONDS = 0.5
RETRY_SECONDS_MAX = 1.0  # work is as quick as before a second after the bus is back
WAITING_MAX = 2_000
QUEUED_MAX = 10_000
HINT_BYTES_MAX = 7_900

_decoder = msgspec.json.Decoder(Hint)

Send = Callable[[Sequence[bytes]], Awaitable[None]]
Follow = Callable[[], AbstractAsyncContextManager[AsyncIterator[Hint]]]


def encode_hint(hint: Hint) -> list[bytes]:
    """A hint as messages that are small enough for every bus."""
    data = msgspec.json.encode(hint)
    if len(data) <= HINT_BYTES_MAX:
        return [data]
    runs, lanes = len(hint.runs) // 2, len(hint.lanes) // 2
    if not runs and not lanes:  # one lane with a name that long: wake them all the same
        return [msgspec.json.encode(Hint(runs=hint.runs))]
    halves = (
        Hint(runs=hint.runs[:runs], lanes=hint.lanes[:lanes]),
        Hint(runs=hint.runs[runs:], lanes=hint.lanes[lanes:]),
    )
    return [part for half in halves for part in encode_hint(half)]


def decode_hint(data: bytes) -> Hint:
    """Read back a hint, or MalformedEvent."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(f"not a hint: {error}") from error


class HintSender:
    """Sends hints from a task of its own; what comes while one is on its way goes together."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._runs: dict[RunId, None] = {}
        self._lanes: dict[Lane, None] = {}
        self._stirred = asyncio.Event()
        self._closing = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    def put(self, hint: Hint) -> None:
        """Take a hint; when too many wait, the oldest are forgotten."""
        if self._closing.is_set():
            return
        _add(self._runs, hint.runs)
        _add(self._lanes, hint.lanes)
        self._stirred.set()
        if self._sender is None:
            self._sender = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Send what waits, if that is done at once, and stop; safe to call twice."""
        self._closing.set()
        self._stirred.set()
        if self._sender is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._sender
            self._sender = None

    async def _run(self) -> None:
        tries = 0
        while self._runs or self._lanes or not self._closing.is_set():
            await self._stirred.wait()
            self._stirred.clear()
            try:
                await self._send(self._drain())
                tries = 0
            except Unavailable as error:
                if not tries:
                    log.warning("hints wait, schedulers look by themselves: %s", error)
                tries += 1
            except Exception:
                log.exception("hints could not be sent")
                tries += 1
            await wait_at_most(self._closing, backoff(tries) if tries else PAUSE_SECONDS)

    def _drain(self) -> list[bytes]:
        hint = Hint(runs=tuple(self._runs), lanes=tuple(self._lanes))
        self._runs.clear()
        self._lanes.clear()
        return encode_hint(hint)


def _add(waiting: dict[RunId, None] | dict[Lane, None], items: Sequence[RunId | Lane]) -> None:
    waiting.update(dict.fromkeys(items))  # type: ignore[arg-type]
    while len(waiting) > WAITING_MAX:
        del waiting[next(iter(waiting))]  # type: ignore[arg-type]


@asynccontextmanager
async def patient_hints(follow: Follow) -> AsyncIterator[AsyncIterator[Hint]]:
    """Hints from a bus that comes and goes: silence while it is away, no error."""
    mailbox: Mailbox[Hint] = Mailbox(QUEUED_MAX)
    tried = asyncio.Event()
    following = asyncio.create_task(_follow(follow, mailbox, tried))
    try:
        await tried.wait()
        yield mailbox
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _follow(follow: Follow, mailbox: Mailbox[Hint], tried: asyncio.Event) -> None:
    tries = 0
    while True:
        try:
            async with follow() as hints:
                first = [Hint(missed=True)] if tries else []
                tries = 0
                tried.set()
                await _fill(mailbox, first, hints)
        except Unavailable as error:
            if not tries:
                log.warning("no hints are heard, work is found by looking: %s", error)
        except Exception:
            log.exception("following hints failed")
        tries += 1
        tried.set()
        await wait_at_most(asyncio.Event(), backoff(tries))


async def _fill(mailbox: Mailbox[Hint], first: Sequence[Hint], hints: AsyncIterator[Hint]) -> None:
    for hint in first:
        mailbox.put(hint)
    async for hint in hints:
        mailbox.put(hint)


def backoff(tries: int) -> float:
    """How long to wait after so many failures in a row."""
    return min(RETRY_SECONDS * 2.0 ** min(tries - 1, 10), RETRY_SECONDS_MAX)


async def wait_at_most(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, but not for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
