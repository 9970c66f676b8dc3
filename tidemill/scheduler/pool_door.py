"""The door for workers behind a broker: heartbeats and reports come in here, letters go out.

Whoever hears a worker first opens its session, and that of its pool; several may do so at once. A
report of a worker not heard of here is dropped: it is repeated, and its heartbeat will be there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import cached_property

import msgspec

from tidemill.domain.events import Bound, Event
from tidemill.domain.identifiers import SECOND, Moment, SessionId
from tidemill.domain.pools import PoolKey
from tidemill.ports.store import Session
from tidemill.protocol.broker_codec import Outcome, report_of
from tidemill.protocol.broker_door import Letter
from tidemill.protocol.broker_messages import (
    BROKER_PROTOCOL_VERSION,
    Advanced,
    Goodbye,
    Heartbeat,
    Printed,
    Released,
    Report,
    Started,
    session_of,
    tokens_from,
)
from tidemill.protocol.messages import PROTOCOL_VERSION, Hello, LogText, ProgressReport
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.greeting import refusal_of
from tidemill.scheduler.handover import Handovers
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.logs import LogKeeper
from tidemill.scheduler.pools import POOL_LIFE, BrokerSession, Pool
from tidemill.scheduler.reports import checked_progress, checked_report

log = logging.getLogger(__name__)

DEPARTURES_MAX = 10_000
ARRIVALS_MAX = 500


class PoolDoor:
    """Implements protocol.broker_door.BrokerDoor."""

    def __init__(self, desk: Desk, logs: LogKeeper) -> None:
        self._desk = desk
        self._logs = logs
        self._handovers = Handovers(desk.plans, desk.entropy.fraction, desk.config.turn_rows_max)
        self._departures: deque[SessionId] = deque(maxlen=DEPARTURES_MAX)
        self._stirred = asyncio.Event()

    @cached_property
    def name(self) -> str:
        """The scheduler, as its markers call it: unlike any other, even of the same name."""
        return f"{self._desk.name}/{self._desk.entropy.session_id()}"

    def hear(self, heartbeat: Heartbeat) -> None:
        """Note what a worker says of itself, unless it said something newer before."""
        pools, now = self._desk.pools, self._desk.clock.monotonic()
        session = pools.get(session_of(heartbeat))
        if session is None:
            self._meet(heartbeat, now)
        elif heartbeat.number > session.number and session.is_about(heartbeat):
            session.update(heartbeat, now)
            pools.heard(session)
            self._greet(session)
            pool = pools.pool_of(session)
            if not pool.opened:
                self._stirred.set()
            if self._desk.backlog and pool.free:
                self._desk.inbox.wake()

    def marker_came_back(self) -> None:
        """What is sent to the broker is delivered again."""
        self._desk.pools.serving = True
        self._desk.pools.path.reached()

    def lose_sight(self) -> None:
        """The broker is out of reach: silence says nothing about workers."""
        self._desk.pools.serving = True
        self._desk.pools.path.missed()

    def refusal(self, report: Report) -> str | None:
        """Why a report must not be listened to: it speaks for another namespace."""
        session = self._desk.pools.get(session_of(report))
        if session is None or session.key.namespace == report.namespace:
            return None
        return f"session {session.id} is not of namespace {report.namespace}"

    async def receive(self, reports: Sequence[Report]) -> None:
        """Take in what workers report, waiting while the inbox is full."""
        items = []
        for report in reports:
            session = self._desk.pools.get(session_of(report))
            item = None if session is None else self._received(session, report)
            if item is not None:
                items.append(item)
        await self._desk.inbox.put(items)

    async def letters(self) -> list[Letter]:
        """Wait for something to send."""
        return await self._desk.pools.letters.take()

    async def run(self) -> None:
        """Open sessions of workers that arrived, end those of workers that left, for ever."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            await self._desk.carry_out(self._open_new)
            while self._departures:
                await self._depart(self._departures.popleft())

    def _meet(self, heartbeat: Heartbeat, now: float) -> None:
        if self._desk.pools.is_full:
            log.warning("so many workers are heard of already that no other one is")
            return  # until some are forgotten
        refusal = _refusal(heartbeat, self._desk)
        if refusal is None:
            self._desk.pools.add(BrokerSession(heartbeat, now))
            self._stirred.set()
        else:
            log.warning("worker %r is refused: %s", heartbeat.worker, refusal)
            draft = self._desk.pools.letters.draft(session_of(heartbeat), heartbeat.namespace)
            draft.refused = refusal

    def _greet(self, session: BrokerSession) -> None:
        if session.opened and not session.greeted:
            self._desk.pools.letters.draft(session.id, session.key.namespace).welcome = True

    def _received(self, session: BrokerSession, report: Report) -> TaskItem | None:
        match report:
            case Started():
                pool = session.key.id
                item = _item(session, report, Bound(report.epoch, pool, session.id))
                return msgspec.structs.replace(item, number=report.number)
            case Advanced():
                progress = ProgressReport(report.token, report.fraction, report.message)
                session.advance(checked_progress(progress))
            case Printed():
                text = report.text.replace("\0", "\ufffd")
                self._logs.add([LogText(report.token, text, report.dropped)])
            case Goodbye():
                self._departures.append(session.id)
                self._stirred.set()
            case _:
                event = checked_report(report_of(report), self._desk.config.result_bytes_max)
                unbound = isinstance(report, Released) and report.unbound
                return _item(session, report, event, session.key.id if unbound else session.id)
        return None

    async def _open_new(self) -> None:
        """Write the rows of workers and pools that are new here; any that are there are left."""
        pools = [pool for pool in self._desk.pools.all() if not pool.opened]
        arrived = [one for one in self._desk.pools.sessions() if not one.opened][:ARRIVALS_MAX]
        if not arrived and not pools:
            return
        ttl = round(self._desk.config.session_ttl_seconds * SECOND)
        async with self._desk.store.transaction() as tx:
            now = await tx.now()
            for pool in pools:
                await tx.sessions.open(_row_of_pool(pool.key, now))
            for session in arrived:
                await tx.sessions.open(_row(session, now, ttl))
        if pools:  # a row of long ago is there, and may be over
            await self._desk.store.renew_sessions([pool.id for pool in pools], POOL_LIFE)
        for session in arrived:
            session.opened = True
            self._desk.pools.heard(session)
            self._greet(session)
        self._mark_opened(pools)

    def _mark_opened(self, pools: Sequence[Pool]) -> None:
        for pool in pools:
            pool.opened = True
        self._desk.look_soon()
        if any(not session.opened for session in self._desk.pools.sessions()):
            self._stirred.set()

    async def _depart(self, session_id: SessionId) -> None:
        handover = await self._desk.carry_out(
            lambda: self._handovers.depart(self._desk.store, session_id)
        )
        session = self._desk.pools.get(session_id)
        if session is not None:
            self._desk.pools.close([session])
        self._desk.look_soon()
        self._desk.inbox.go_on(sorted(handover.runs))


def _item(
    session: BrokerSession,
    report: Started | Outcome,
    event: Event,
    holder: SessionId | None = None,
) -> TaskItem:
    return TaskItem(
        token=report.token,
        event=event,
        reporter=session.id,
        namespace=session.key.namespace,
        holder=holder,
    )


def _refusal(heartbeat: Heartbeat, desk: Desk) -> str | None:
    if heartbeat.protocol != BROKER_PROTOCOL_VERSION:
        return (
            f"protocol {heartbeat.protocol} is not spoken over the broker, "
            f"only {BROKER_PROTOCOL_VERSION}"
        )
    hello = Hello(
        protocol=PROTOCOL_VERSION,
        worker=heartbeat.worker,
        namespace=heartbeat.namespace,
        slots=heartbeat.slots,
        queues=heartbeat.queues,
        labels=heartbeat.labels,
        executors=heartbeat.executors,
        offers=heartbeat.offers,
        held=tokens_from(heartbeat.held),
    )
    return refusal_of(hello, desk.config)


def _row(session: BrokerSession, now: Moment, ttl: int) -> Session:
    return Session(
        id=session.id,
        namespace=session.key.namespace,
        worker=session.worker,
        scheduler="broker",
        secret_hash="",  # no secret has this hash: nobody comes back under it over another way
        slots=session.slots,
        queues=session.key.queues,
        labels=dict(session.key.labels),
        offers=tuple(sorted(session.offers)),
        opened_at=now,
        expires_at=now + ttl,
    )


def _row_of_pool(key: PoolKey, now: Moment) -> Session:
    return Session(
        id=key.id,
        namespace=key.namespace,
        worker=key.topic,
        scheduler="broker",
        secret_hash="",
        slots=0,
        queues=key.queues,
        labels=dict(key.labels),
        opened_at=now,
        expires_at=now + POOL_LIFE,
    )
