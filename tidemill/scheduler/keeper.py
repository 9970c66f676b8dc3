"""The keeper: keeps sessions alive, and finds the tasks of those that are not.

A scheduler renews before it expires others, and expires only when its own access to the store has
been uninterrupted for the life of a session: after a restart of the database, or on a laptop that
slept, every session looks expired, and none is.
"""

from __future__ import annotations

import logging

from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Lost, Released
from tidemill.domain.identifiers import SECOND, SessionId
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import Cancels
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.sessions import AttachedSession

log = logging.getLogger(__name__)


class Continuity:
    """For how long this process has reached its store without a gap."""

    def __init__(self, clock: Clock, gap_seconds_max: float) -> None:
        self._clock = clock
        self._gap_seconds_max = gap_seconds_max
        self._since: float | None = None
        self._last = (0.0, 0)

    def reached(self) -> None:
        """The store has answered."""
        steady, wall = self._clock.monotonic(), self._clock.now()
        gap = max(steady - self._last[0], (wall - self._last[1]) / SECOND)
        if self._since is None or gap > self._gap_seconds_max:
            self._since = steady
        self._last = (steady, wall)

    def missed(self) -> None:
        """The store has not answered."""
        self._since = None

    def lasted(self, seconds: float) -> bool:
        """Whether there was no gap for so long."""
        return self._since is not None and self._clock.monotonic() - self._since >= seconds


class Keeper:
    """Renews sessions, reaps the tasks of lost ones, compares grants with holdings."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._continuity = Continuity(desk.clock, desk.config.session_ttl_seconds / 2)
        self._to_cut: set[SessionId] = set()

    def cut_short(self, session_id: SessionId) -> None:
        """The stream of a session ended without goodbye: it has little time to come back."""
        self._to_cut.add(session_id)

    async def keep_alive(self) -> None:
        """Renew and reap, again and again, at the pace of the reaper."""
        renewed_at = self._desk.clock.monotonic() - self._desk.config.renew_seconds
        while True:
            due = self._desk.clock.monotonic() - renewed_at >= self._desk.config.renew_seconds
            if due:
                renewed_at = self._desk.clock.monotonic()
            await self._guarded_step(renew=due)
            await self._desk.clock.sleep(self._desk.config.scan_seconds)

    async def compare(self) -> None:
        """Compare grants with holdings, again and again."""
        while True:
            await self._desk.clock.sleep(self._desk.config.reconcile_seconds)
            for session in self._desk.sessions.all():
                await self._guarded_reconcile(session)

    async def renew(self) -> None:
        """Move the expiry of the sessions heard from; drop those that are closed."""
        heard = self._desk.sessions.heard_from()
        if heard:
            ttl = round(self._desk.config.session_ttl_seconds * SECOND)
            ids = [session.id for session in heard]
            alive = await self._desk.store.renew_sessions(ids, ttl)
            self._desk.sessions.end(set(ids) - alive)
        if self._to_cut:
            cut = frozenset(self._to_cut)
            left = round(self._desk.config.lost_stream_seconds * SECOND)
            await self._desk.store.renew_sessions(sorted(cut), left)
            self._to_cut -= cut

    async def reap(self) -> int:
        """Note the tasks of lost sessions for the next turn; return how many."""
        expired = self._continuity.lasted(self._desk.config.session_ttl_seconds)
        lost = await self._desk.store.watch.lost_tasks(
            self._desk.config.scan_items_max, expired=expired
        )
        await self._desk.inbox.put(
            TaskItem(token=task.token, event=Lost(task.token.epoch, task.session_id))
            for task in lost
        )
        return len(lost)

    async def reconcile(self, session: AttachedSession) -> int:
        """Compare what the store says was granted with what the worker says it holds.

        A row that the worker has not held for longer than the start bound is released, unspent:
        its assignment was never sent, or never arrived. What the worker holds without a row, or
        with one that asks to stop, it is told to stop.
        """
        if session.held is None:
            return 0
        stored = await self._desk.store.watch.held_by(session.id)
        if self._desk.sessions.get(session.id) is not session:
            return 0  # gone meanwhile: what it said is no news any more
        tokens = {task.token for task in stored}
        strays = [token for token in session.granted if token not in tokens]
        unheld = [token for token in (*tokens, *strays) if token not in session.held]
        overdue = session.missing_for(
            unheld, self._desk.clock.monotonic(), self._desk.config.start_bound_seconds
        )
        await self._desk.inbox.put(
            TaskItem(token=token, event=Released(token.epoch)) for token in overdue & tokens
        )
        for token in overdue:
            session.give_up(token)
        unreported = (tokens & session.held) - session.granted.keys()
        if unreported and not session.pending:
            session.end()  # its report was lost in here: let the worker come back and repeat it
        stopping = {task.token for task in stored if task.cancelling}
        to_stop = [token for token in (*stopping, *strays) if token in session.held]
        if to_stop:
            session.send(Cancels(tuple(sorted(to_stop))))
        return len(overdue)

    async def _guarded_step(self, *, renew: bool) -> None:
        try:
            if renew or self._to_cut:
                await self.renew()
            await self.reap()
        except Unavailable as error:
            self._continuity.missed()
            log.warning("sessions could not be kept: %s", error)
        else:
            self._continuity.reached()

    async def _guarded_reconcile(self, session: AttachedSession) -> None:
        try:
            await self.reconcile(session)
        except Unavailable as error:
            log.warning("grants of %s could not be compared: %s", session.worker, error)
