"""The door: worker streams come in here, whatever carries them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

import msgspec

from tidemill.domain.errors import TidemillError
from tidemill.domain.identifiers import RunId
from tidemill.protocol.messages import (
    Goodbye,
    Hello,
    Holdings,
    Logs,
    Outcome,
    Outcomes,
    Ping,
    Progress,
    Refused,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.greeting import SLOTS_MAX, refusal_of
from tidemill.scheduler.handover import Arrival, Handover, Handovers
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.keeper import Keeper
from tidemill.scheduler.logs import LogKeeper
from tidemill.scheduler.reports import checked_outcome, checked_progress
from tidemill.scheduler.sessions import AttachedSession, Outgoing

DEPART_LOOKS_MAX = 100
DEPART_LOOK_SECONDS = 0.02

log = logging.getLogger(__name__)


class WorkerDoor:
    """Serves worker streams: greets, reads, writes, and notices silence."""

    def __init__(self, desk: Desk, keeper: Keeper, logs: LogKeeper) -> None:
        self._desk = desk
        self._keeper = keeper
        self._logs = logs
        self._handovers = Handovers(desk.plans, desk.entropy.fraction, desk.config.turn_rows_max)

    async def attach(
        self, incoming: AsyncIterator[WorkerMessage]
    ) -> AsyncIterator[SchedulerMessage]:
        """Serve one stream until either side ends it."""
        hello = await self._first_message(incoming)
        refusal = refusal_of(hello, self._desk.config)
        if refusal is not None or not isinstance(hello, Hello):
            log.warning("a worker is refused: %s", refusal)
            yield Refused(refusal or "the first message must be Hello")
            return
        hello = msgspec.structs.replace(hello, finished=self._checked(hello.finished))
        session, welcome = await self._welcome(hello)
        reader = asyncio.create_task(self._read(session, incoming))
        try:
            yield welcome
            async with aclosing(self._outgoing(session)) as outgoing:
                async for message in outgoing:
                    yield message
        finally:
            reader.cancel()
            self._detach(session)

    async def _first_message(self, incoming: AsyncIterator[WorkerMessage]) -> WorkerMessage | None:
        try:
            async with asyncio.timeout(self._desk.config.silence_seconds):
                return await anext(incoming, None)
        except TimeoutError:
            return None

    async def _welcome(self, hello: Hello) -> tuple[AttachedSession, Welcome]:
        arrival = Arrival(
            hello=hello,
            session_id=self._desk.entropy.session_id(),
            secret=self._desk.entropy.secret(),
            scheduler=self._desk.name,
            ttl_seconds=self._desk.config.session_ttl_seconds,
        )
        handover = await self._arrive(arrival)
        if handover.replaced is not None:
            self._desk.sessions.end([handover.replaced])
        session = AttachedSession(
            arrival.session_id, hello, self._desk.config.outgoing_messages_max
        )
        now = self._desk.clock.monotonic()
        for token in handover.kept:
            session.grant(token, now)
        self._desk.sessions.add(session)
        self._look_at(handover.runs)
        return session, Welcome(
            session=session.id,
            secret=handover.secret,
            keep=tuple(handover.kept),
            acknowledged=tuple(outcome.token for outcome in hello.finished),
        )

    async def _arrive(self, arrival: Arrival) -> Handover:
        try:
            return await self._desk.carry_out(
                lambda: self._handovers.arrive(self._desk.store, arrival)
            )
        except TidemillError:
            log.exception("what worker %s brings along is left behind", arrival.hello.worker)
        # Its tasks run again once their session has expired; the worker itself is welcome.
        hello = msgspec.structs.replace(
            arrival.hello, session=None, secret=None, held=(), finished=()
        )
        alone = msgspec.structs.replace(arrival, hello=hello)
        return await self._desk.carry_out(lambda: self._handovers.arrive(self._desk.store, alone))

    async def _outgoing(self, session: AttachedSession) -> AsyncGenerator[SchedulerMessage, None]:
        outgoing = session.outgoing
        while not outgoing.ended:
            message = outgoing.take() or await self._next(outgoing)
            if message is not None:
                yield message

    async def _next(self, outgoing: Outgoing) -> SchedulerMessage | None:
        try:
            async with asyncio.timeout(self._desk.config.ping_seconds):
                await outgoing.wait()
        except TimeoutError:
            return Ping()
        return outgoing.take()

    async def _read(self, session: AttachedSession, incoming: AsyncIterator[WorkerMessage]) -> None:
        try:
            async with asyncio.timeout(self._desk.config.silence_seconds) as silence:
                await self._hear(session, incoming, silence)
        except TimeoutError:
            log.info("worker %s has been silent for too long", session.worker)
        finally:
            session.end()
            # Not left to the other half of the stream, which may be stuck in a write.
            self._detach(session)

    async def _hear(
        self,
        session: AttachedSession,
        incoming: AsyncIterator[WorkerMessage],
        silence: asyncio.Timeout,
    ) -> None:
        loop = asyncio.get_running_loop()
        async for message in incoming:
            # While a message is dealt with, which may take long, nobody is called silent.
            silence.reschedule(None)
            session.heard = True
            await self._receive(session, message)
            if session.departed:
                return
            silence.reschedule(loop.time() + self._desk.config.silence_seconds)

    async def _receive(self, session: AttachedSession, message: WorkerMessage) -> None:
        match message:
            case Outcomes(outcomes):
                await self._report(session, outcomes)
            case Holdings():
                session.held = frozenset(message.held)
                session.held_at = self._desk.clock.monotonic()
                session.slots = min(message.slots, SLOTS_MAX)
            case Progress(reports):
                known = (report for report in reports if report.token in session.granted)
                session.progress.update((one.token, checked_progress(one)) for one in known)
            case Logs(chunks):
                self._logs.add(chunks)
            case Goodbye():
                await self._depart(session)
            case Ping() | Hello():
                pass

    async def _report(self, session: AttachedSession, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            session.over(outcome.token)
        session.pending += len(outcomes)
        session.blocked = True
        try:
            await self._desk.inbox.put(_items(session, self._checked(outcomes)))
        finally:
            session.blocked = False

    def _checked(self, outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
        limit = self._desk.config.result_bytes_max
        return tuple(checked_outcome(outcome, limit) for outcome in outcomes)

    async def _depart(self, session: AttachedSession) -> None:
        session.departed = True
        for _ in range(DEPART_LOOKS_MAX):
            if not session.pending:
                break
            await self._desk.clock.sleep(DEPART_LOOK_SECONDS)
        handover = await self._desk.carry_out(
            lambda: self._handovers.depart(self._desk.store, session.id)
        )
        self._look_at(handover.runs)

    def _look_at(self, run_ids: set[RunId]) -> None:
        self._desk.look_soon()
        self._desk.inbox.go_on(sorted(run_ids))

    def _detach(self, session: AttachedSession) -> None:
        if self._desk.sessions.get(session.id) is not session:
            return
        self._desk.sessions.remove(session)
        if not session.departed:
            self._keeper.cut_short(session.id)


def _items(session: AttachedSession, outcomes: Sequence[Outcome]) -> list[TaskItem]:
    return [
        TaskItem(
            token=outcome.token,
            event=outcome.report,
            reporter=session.id,
            namespace=session.namespace,
        )
        for outcome in outcomes
    ]
