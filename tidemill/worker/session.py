"""One stream with a scheduler, from Hello to its end; knows neither sockets nor threads."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple

from tidemill.domain.identifiers import SessionId, Token
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import (
    Acks,
    Assignments,
    Cancels,
    Goodbye,
    Hello,
    Holdings,
    Outcomes,
    Ping,
    Refused,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)
from tidemill.worker.config import WorkerConfig, offers_of
from tidemill.worker.crew import Crew
from tidemill.worker.link import Link, LinkLost, WorkerRefused

_log = logging.getLogger("tidemill.worker")

BEGIN_AT_ONCE = 64
"""Tasks begun before others get a turn; in batches of fewer each costs the scheduler more."""

GATHERED_MAX = 256
GATHER_SECONDS = 0.01
"""While short tasks wait for a slot, outcomes wait for more of their kind, so many or so long: a
message costs both sides as much as a dozen tasks in it."""


class Credentials(NamedTuple):
    """What proves that a worker is the one that held a session."""

    session: SessionId
    secret: str


class Session:
    """Serves one stream. The scheduler's end is read here, the worker's end is an Outgoing."""

    def __init__(self, config: WorkerConfig, crew: Crew, clock: Clock) -> None:
        self.credentials: Credentials | None = None
        self.said_goodbye = False
        self.after_trouble = False  # somebody was told, and wants to hear when it is over
        self._scheduler = ""
        self._config = config
        self._crew = crew
        self._clock = clock
        self._outgoing = Outgoing(config, crew, clock)
        self._presented: tuple[Token, ...] = ()

    async def serve(
        self, link: Link, executors: tuple[str, ...], credentials: Credentials | None
    ) -> None:
        """Exchange messages until the stream ends; LinkLost when it broke or fell silent."""
        hello = self._hello(executors, credentials)
        self._scheduler = str(link)
        incoming = link.open(self._outgoing.begin(hello))
        try:
            await self._listen(incoming)
        except TimeoutError as error:
            raise LinkLost("the scheduler fell silent") from error
        finally:
            self.said_goodbye = self._outgoing.ended
            self._outgoing.close()
            await _close(incoming)

    def _hello(self, executors: tuple[str, ...], credentials: Credentials | None) -> Hello:
        ledger = self._crew.ledger
        ledger.start_over()
        # As much as one message may hold; the others count as held and follow after Welcome.
        finished = ledger.take()
        told = {outcome.token for outcome in finished}
        held = tuple(token for token in self._crew.held if token not in told)
        self._presented = held
        return Hello(
            worker=self._config.name,
            namespace=self._config.namespace,
            slots=self._crew.slots.usable,
            queues=self._config.queues,
            labels=self._config.labels,
            executors=tuple(name for name in executors if name not in self._config.functions),
            offers=offers_of(self._config.functions),
            session=credentials.session if credentials else None,
            secret=credentials.secret if credentials else None,
            held=held,
            finished=finished,
            joins_acks=True,
        )

    async def _listen(self, incoming: AsyncIterator[SchedulerMessage]) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._config.connect_seconds) as silence:
            async for message in incoming:
                silence.reschedule(loop.time() + self._config.silence_seconds)
                if isinstance(message, Assignments):
                    await self._take(message)
                else:
                    self._handle(message)

    async def _take(self, message: Assignments) -> None:
        """Begin what was assigned, some at a time.

        Of many short tasks the first are reported while the next begin: so worker and scheduler
        both have something to do, where otherwise each would wait for the other.
        """
        if message.acks is not None:
            self._forget(message.acks)
        for start in range(0, len(message.assignments), BEGIN_AT_ONCE):
            if start:
                await self._clock.sleep(0)
            self._crew.take(message.assignments[start : start + BEGIN_AT_ONCE])

    def _forget(self, acks: Acks) -> None:
        self._crew.ledger.forget((*acks.tokens, *acks.stale))

    def _handle(self, message: SchedulerMessage) -> None:
        match message:
            case Acks():
                self._forget(message)
            case Cancels(tokens):
                self._crew.cancel(tokens)
            case Welcome():
                self._welcome(message)
            case Refused(reason):
                raise WorkerRefused(reason)
            case Ping():
                pass

    def _welcome(self, welcome: Welcome) -> None:
        self.credentials = Credentials(welcome.session, welcome.secret)
        self._crew.welcomed.set()
        level = logging.WARNING if self.after_trouble else logging.INFO
        _log.log(level, "connected to %s", self._scheduler)
        self._crew.ledger.forget(welcome.acknowledged)
        kept = {*welcome.keep, *welcome.acknowledged}
        self._crew.abandon([token for token in self._presented if token not in kept])
        self._outgoing.open()


class Outgoing:
    """What the worker says on one stream, made up whenever the link can take the next message.

    Outcomes that gather while a message is on its way go out together in the next one. A ping
    fills every second in which there is nothing else to say.
    """

    def __init__(self, config: WorkerConfig, crew: Crew, clock: Clock) -> None:
        self.ended = False  # Goodbye has been said
        self._config = config
        self._crew = crew
        self._clock = clock
        self._queue: deque[WorkerMessage] = deque()
        self._opened = False
        self._closed = False
        self._ping_at = self._holdings_at = self._said_at = 0.0
        self._flush_at: float | None = None
        self._gather_until: float | None = None

    def begin(self, hello: Hello) -> Outgoing:
        """Say Hello first, and nothing else until `open`."""
        self._queue.append(hello)
        return self

    def open(self) -> None:
        """The scheduler has said Welcome."""
        self._opened = True
        self._said_at = self._clock.monotonic()
        self._holdings_at = self._said_at + self._config.holdings_seconds
        if self._crew.wanted != self._crew.slots.usable:
            self._crew.slots_changed = True  # Hello told the slots alone
        self._crew.changed.set()

    def close(self) -> None:
        """The stream is over: say nothing more."""
        self._closed = True
        self._crew.changed.set()

    def __aiter__(self) -> Outgoing:
        return self

    async def __anext__(self) -> WorkerMessage:
        while not (self._closed or self.ended):
            self._crew.changed.clear()
            now = self._clock.monotonic()
            if self._opened and now - self._said_at > self._config.silence_seconds:
                # The loop was blocked. The scheduler has hung up: what is said here is lost.
                break
            message = self._next(now)
            if message is not None:
                self._said_at = now
                self._ping_at = now + self._config.ping_seconds
                return message
            await self._wait(now)
        raise StopAsyncIteration

    def _next(self, now: float) -> WorkerMessage | None:
        if self._queue:
            return self._queue.popleft()
        if not self._opened:
            return None
        crew = self._crew
        if crew.slots_changed or now >= self._holdings_at:
            return self._holdings(now)
        tells = not self._gathers(now) and crew.ledger.unsent
        # Before the outcomes, so that what an attempt wrote arrives while its grant lives.
        if crew.output and (tells or crew.leaving or self._flush_is_due(now)):
            self._flush_at = None
            self._queue.extend(crew.output.take())
            return self._queue.popleft()
        if tells:
            self._gather_until = None
            return Outcomes(crew.ledger.take())
        if crew.leaving:
            self.ended = True
            return Goodbye(tuple(crew.released))
        return Ping() if now >= self._ping_at else None

    def _holdings(self, now: float) -> Holdings:
        self._crew.slots_changed = False
        self._holdings_at = now + self._config.holdings_seconds
        return Holdings(held=self._crew.held, slots=self._crew.wanted)

    def _gathers(self, now: float) -> bool:
        """Whether more outcomes are about to join those that are there."""
        crew = self._crew
        if crew.leaving or not crew.waiting or not 0 < crew.ledger.unsent < GATHERED_MAX:
            self._gather_until = None
        elif self._gather_until is None:
            self._gather_until = now + GATHER_SECONDS
        return self._gather_until is not None and now < self._gather_until

    def _flush_is_due(self, now: float) -> bool:
        if self._flush_at is None:
            self._flush_at = now + self._config.flush_seconds
        return now >= self._flush_at

    async def _wait(self, now: float) -> None:
        due = [self._ping_at, self._holdings_at] if self._opened else []
        due += [at for at in (self._flush_at, self._gather_until) if at is not None]
        until = min(due) - now if due else None
        with suppress(TimeoutError):
            async with asyncio.timeout(until):
                await self._crew.changed.wait()


async def _close(stream: AsyncIterator[SchedulerMessage]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
