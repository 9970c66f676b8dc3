"""The door: worker streams come in here, whatever carries them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

import msgspec

from tidemill.domain.errors import MalformedRun, TidemillError, Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.engine.plans import PlansMissing
from tidemill.protocol.messages import (
    PROTOCOL_VERSION,
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
from tidemill.scheduler.handover import Arrival, Handover, Handovers
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.keeper import Keeper
from tidemill.scheduler.logs import LogKeeper
from tidemill.scheduler.sessions import AttachedSession

DEPART_LOOKS_MAX = 100
DEPART_LOOK_SECONDS = 0.02
SLOTS_MAX = 10_000

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
        refusal = _refusal(hello)
        if refusal is not None or not isinstance(hello, Hello):
            yield Refused(refusal or "the first message must be Hello")
            return
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
            return await self._carry_out(lambda: self._handovers.arrive(self._desk.store, arrival))
        except TidemillError:
            log.exception("what worker %s brings along is left behind", arrival.hello.worker)
        # Its tasks run again once their session has expired; the worker itself is welcome.
        hello = msgspec.structs.replace(
            arrival.hello, session=None, secret=None, held=(), finished=()
        )
        alone = msgspec.structs.replace(arrival, hello=hello)
        return await self._carry_out(lambda: self._handovers.arrive(self._desk.store, alone))

    async def _carry_out(self, operation: Callable[[], Awaitable[Handover]]) -> Handover:
        """Try a handover until the store takes it; the worker waits, and may try elsewhere."""
        while True:
            try:
                return await operation()
            except PlansMissing as missing:
                await self._desk.load_plans(missing)
            except MalformedRun as error:
                await self._desk.quarantine(RunId(error.run_id), error)
            except Unavailable:
                await self._desk.pause()

    async def _outgoing(self, session: AttachedSession) -> AsyncGenerator[SchedulerMessage, None]:
        while True:
            try:
                async with asyncio.timeout(self._desk.config.ping_seconds):
                    message = await session.outgoing.get()
            except TimeoutError:
                message = Ping()
            if message is None:
                return
            yield message

    async def _read(self, session: AttachedSession, incoming: AsyncIterator[WorkerMessage]) -> None:
        try:
            while not session.departed:
                async with asyncio.timeout(self._desk.config.silence_seconds):
                    message = await anext(incoming, None)
                if message is None:
                    break
                session.heard = True
                await self._receive(session, message)
        except TimeoutError:
            log.info("worker %s has been silent for too long", session.worker)
        finally:
            session.end()

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
                session.progress.update((report.token, report) for report in known)
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
            await self._desk.inbox.put(_items(session, outcomes))
        finally:
            session.blocked = False

    async def _depart(self, session: AttachedSession) -> None:
        session.departed = True
        for _ in range(DEPART_LOOKS_MAX):
            if not session.pending:
                break
            await self._desk.clock.sleep(DEPART_LOOK_SECONDS)
        handover = await self._carry_out(
            lambda: self._handovers.depart(self._desk.store, session.id)
        )
        self._look_at(handover.runs)

    def _look_at(self, run_ids: set[RunId]) -> None:
        self._desk.look_soon()
        self._desk.inbox.go_on(sorted(run_ids))

    def _detach(self, session: AttachedSession) -> None:
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


def _refusal(hello: WorkerMessage | None) -> str | None:
    if not isinstance(hello, Hello):
        return "the first message must be Hello"
    if hello.protocol != PROTOCOL_VERSION:
        return f"protocol {hello.protocol} is not spoken here, only {PROTOCOL_VERSION}"
    # None, when a worker that leaves comes back only to hand over what it still owes.
    if not 0 <= hello.slots <= SLOTS_MAX:
        return f"slots must be from 0 to {SLOTS_MAX}, not {hello.slots}"
    if not hello.queues:
        return "a worker must serve at least one queue"
    return None
