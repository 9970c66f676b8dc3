"""A worker's session over a broker, from its first heartbeat to its goodbye.

Nothing that is sent is sure to arrive. The worker repeats `started` until it is told `bound` or
`stale`, and outcomes until they are acknowledged; whatever else is lost, the next heartbeat mends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from tidemill.domain.errors import TidemillError, Unavailable
from tidemill.domain.events import CancelConfirmed, Released
from tidemill.domain.identifiers import RunId, SessionId, Token
from tidemill.domain.pools import BROKER_PREFIX, PoolKey, pool_key
from tidemill.ports.broker import Broker, Message
from tidemill.ports.clock import Clock
from tidemill.protocol.broker_codec import grant_of, outcome_of
from tidemill.protocol.broker_messages import (
    ANSWERS,
    BROKER_PROTOCOL_VERSION,
    HEARTBEATS,
    REPORTS,
    Advanced,
    Answer,
    BrokerMessage,
    Goodbye,
    Heartbeat,
    Printed,
    Report,
    Started,
    decode_answer,
    encode,
    tokens_from,
    tokens_to,
)
from tidemill.protocol.broker_messages import Released as HandedBack
from tidemill.protocol.cloud_events import MEDIA_TYPE
from tidemill.protocol.messages import Logs, LogText, Outcome, ProgressReport
from tidemill.protocol.unreadable import Read, Sorter
from tidemill.worker.config import WorkerConfig, offers_of
from tidemill.worker.crew import Crew
from tidemill.worker.hand import Hand
from tidemill.worker.link import WorkerRefused
from tidemill.worker.taker import Taker

_log = logging.getLogger("tidemill.worker")

HEADERS = {"content-type": MEDIA_TYPE}
UNSENT_MAX = 1_000
RETRY_SECONDS = 0.5


class SessionClosed(TidemillError):
    """The schedulers have closed the session: what it held is somebody else's."""


class BrokerSession:
    """What one worker says and hears over a broker."""

    def __init__(
        self,
        config: WorkerConfig,
        crew: Crew,
        broker: Broker,
        clock: Clock,
        name: SessionId,
        executors: Sequence[str],
    ) -> None:
        self.id = SessionId(BROKER_PREFIX + name)
        self.is_welcome = False
        self._config = config
        self._crew = crew
        self._broker = broker
        self._clock = clock
        self._executors = tuple(name for name in executors if name not in config.functions)
        self._offers = offers_of(config.functions)
        self._hand = Hand(config.started_seconds)
        self._sorter = Sorter(broker)
        self._taker = Taker(crew, self._hand, broker, clock, self._key)
        self._unsent: deque[Message] = deque(maxlen=UNSENT_MAX)  # output, the latest of it
        self._beats = self._words = 0
        self._beat_now = asyncio.Event()
        self._flush_at: float | None = None
        self._said: dict[Token, float] = {}  # outcomes, and when they are to be said again
        self._goodbye_at = 0.0

    async def serve(self) -> None:
        """Work until goodbye is answered; SessionClosed or WorkerRefused when it ends earlier."""
        taking = asyncio.create_task(self._forever(self._take))
        duties = [
            asyncio.create_task(self._forever(self._beat)),
            asyncio.create_task(self._forever(self._listen)),
            asyncio.create_task(self._forever(lambda: self._speak(taking))),
        ]
        try:
            done, _ = await asyncio.wait(duties, return_when=asyncio.FIRST_COMPLETED)
            for duty in done:
                duty.result()
        finally:
            for task in (taking, *duties):
                task.cancel()
            await asyncio.gather(taking, *duties, return_exceptions=True)

    @property
    def _key(self) -> PoolKey:
        return pool_key(self._config.namespace, self._config.queues, self._config.labels)

    async def _forever(self, duty: Callable[[], Awaitable[None]]) -> None:
        """Until the duty is done: the loss of the broker is waited out, what runs goes on."""
        while True:
            try:
                return await duty()
            except Unavailable as error:
                _log.warning("the broker is lost: %s", error)
            await self._clock.sleep(RETRY_SECONDS)

    # Heartbeats

    async def _beat(self) -> None:
        while True:
            self._beat_now.clear()
            await self._send(HEARTBEATS, [self._message(self._heartbeat(), self.id)])
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.ping_seconds):
                    await self._beat_now.wait()

    def _heartbeat(self) -> Heartbeat:
        self._beats += 1
        held = self._crew.held
        return Heartbeat(
            protocol=BROKER_PROTOCOL_VERSION,
            session=self.id,
            number=self._beats,
            greeted=self.is_welcome,
            worker=self._config.name,
            namespace=self._config.namespace,
            slots=self._crew.slots.usable if not self._taker.alone else len(held),
            queues=self._config.queues,
            labels=self._config.labels,
            executors=self._executors,
            offers=self._offers,
            held=tokens_to(held),
            unbound=tokens_to(self._hand.tokens),
        )

    # Commands

    async def _take(self) -> None:
        await self._taker.run()

    # Answers

    async def _listen(self) -> None:
        async with self._broker.follow(ANSWERS, self.id) as messages:
            self._beat_now.set()  # who has not heard us welcome us yet may do so now
            async for message in messages:
                read: Read[Answer] = await self._sorter.read(ANSWERS, [message], decode_answer)
                if any(answer.session == self.id and self._hear(answer) for _, answer in read):
                    return

    def _hear(self, answer: Answer) -> bool:
        """Do as an answer says; True when it was the last one."""
        if answer.refused is not None:
            raise WorkerRefused(answer.refused)
        if answer.closed and not self._crew.leaving:
            raise SessionClosed("the session was closed by a scheduler")
        if answer.welcome and not self.is_welcome:
            self.is_welcome = True
            self._crew.welcomed.set()
            self._taker.open()
        for run_id, position, epoch, number in answer.bound:
            self._begin(Token(RunId(run_id), position, epoch), number)
        self._hand.drop(tokens_from(answer.stale))
        self._crew.ledger.forget(tokens_from(answer.acknowledged))
        self._cancel(tokens_from(answer.cancel))
        self._crew.changed.set()
        return answer.closed

    def _begin(self, token: Token, number: int) -> None:
        in_hand = self._hand.number_of(token)
        if in_hand == number and (command := self._hand.take(token)) is not None:
            self._taker.begin(command)
        elif in_hand is None and token not in self._crew.held:
            # Ours, says the store, and not in our hands any more: somebody else may have it.
            self._settle(Outcome(token, Released(token.epoch)))

    def _cancel(self, tokens: Sequence[Token]) -> None:
        self._crew.cancel(tokens)
        for token in tokens:
            if self._hand.take(token) is not None:
                self._settle(Outcome(token, CancelConfirmed(token.epoch)))

    def _settle(self, outcome: Outcome) -> None:
        self._crew.ledger.add(outcome)
        self._crew.changed.set()

    # Reports

    async def _speak(self, taking: asyncio.Task[None]) -> None:
        while True:
            self._crew.changed.clear()
            if self._crew.slots_changed:
                self._crew.slots_changed = False
                self._beat_now.set()
            if taking.done() and not taking.cancelled():
                taking.result()
            if self._crew.slots.closed:
                taking.cancel()
                await self._hand_back()
            self._taker.look()
            now = self._clock.monotonic()
            self._hand.drop_old(now, running=len(self._crew.attempts))
            await self._report(now)
            await self._wait(now)

    async def _report(self, now: float) -> None:
        self._gather_output(now)
        while self._unsent:
            batch = list(self._unsent)[: self._config.outcomes_max]
            await self._send(REPORTS, batch)
            for _ in range(min(len(batch), len(self._unsent))):
                self._unsent.popleft()
        await self._send(REPORTS, self._due(now))

    def _due(self, now: float) -> list[Message]:
        """What is to be said for the first time, or once more."""
        words = []
        for token in self._hand.to_say(now, running=len(self._crew.attempts)):
            started = Started(**self._about(token), number=self._hand.number_of(token) or 0)
            words.append(self._word(started, again=self._hand.said_again(token)))
        said = frozenset(self._said)
        for outcome in self._outcomes(now):
            report = outcome_of(outcome.token, outcome.report, self.id, self._config.namespace)
            words.append(self._word(report, again=outcome.token in said))
        if self._may_leave and now >= self._goodbye_at:
            goodbye = Goodbye(session=self.id, namespace=self._config.namespace)
            words.append(self._word(goodbye, again=self._goodbye_at > 0))
            self._goodbye_at = now + self._config.ping_seconds
        return words

    def _outcomes(self, now: float) -> Sequence[Outcome]:
        """How attempts ended: what was not said yet, and what was not answered for long."""
        ledger = self._crew.ledger
        ledger.say_again([token for token, at in self._said.items() if at <= now])
        taken = ledger.take()
        self._said = {token: at for token, at in self._said.items() if token in ledger}
        self._said |= {one.token: now + self._config.repeat_seconds for one in taken}
        return taken

    def _gather_output(self, now: float) -> None:
        """Before the outcomes, so that what an attempt wrote arrives while its grant lives."""
        crew = self._crew
        if not crew.output or not (crew.ledger.unsent or crew.leaving or self._flush_is_due(now)):
            return
        self._flush_at = None
        for gathered in crew.output.take():
            if isinstance(gathered, Logs):
                self._unsent.extend(map(self._printed, gathered.chunks))
            else:
                self._unsent.extend(map(self._advanced, gathered.reports))

    def _printed(self, chunk: LogText) -> Message:
        about = self._about(chunk.token)
        return self._word(
            Printed(**about, number=self._count(), text=chunk.text, dropped=chunk.dropped)
        )

    def _advanced(self, report: ProgressReport) -> Message:
        about = self._about(report.token)
        return self._word(
            Advanced(
                **about,
                number=self._count(),
                fraction=report.fraction,
                message=report.message,
            )
        )

    @property
    def _may_leave(self) -> bool:
        """Whether it is time for goodbye: nothing runs, and every outcome is acknowledged."""
        return self._crew.leaving and not self._crew.ledger.tokens

    def _flush_is_due(self, now: float) -> bool:
        if self._flush_at is None:
            self._flush_at = now + self._config.flush_seconds
        return now >= self._flush_at

    async def _hand_back(self) -> None:
        """The worker leaves: what it has in hand is for the others."""
        tokens = self._hand.tokens
        self._hand.drop(tokens)
        about = [HandedBack(**self._about(token), unbound=True) for token in tokens]
        await self._send(REPORTS, [self._word(report) for report in about])

    async def _wait(self, now: float) -> None:
        again = min(self._said.values(), default=now + self._config.repeat_seconds)
        due = [again, self._hand.next_at(running=len(self._crew.attempts))]
        if self._crew.output:
            due.append(self._flush_at)
        if self._crew.ledger.unsent:
            due.append(now)  # more than one message could hold
        if self._may_leave:
            due.append(self._goodbye_at)
        until = min(at for at in due if at is not None)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - now)):
                await self._crew.changed.wait()

    # Messages

    async def _send(self, topic: str, messages: Sequence[Message]) -> None:
        if messages:
            await self._broker.send(topic, messages)

    def _word(self, report: Report, *, again: bool = False) -> Message:
        """What is said again takes another way: nobody may read the part of the topic where
        the first word went until the group has noticed that a scheduler is gone."""
        key = report.session if isinstance(report, Goodbye) else report.run_id
        return self._message(report, None if again else key)

    def _message(self, message: BrokerMessage, key: str | None) -> Message:
        return Message(value=encode(message, self._clock.now()), key=key, headers=HEADERS)

    def _about(self, token: Token) -> dict[str, Any]:
        return grant_of(token, self.id, self._config.namespace)

    def _count(self) -> int:
        self._words += 1
        return self._words
