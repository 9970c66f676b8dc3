"""The keeper: keeps sessions alive, and finds the tasks of those that are not.

A scheduler renews before it expires others, and expires only when its own access to the store has
been uninterrupted for the life of a session: after a restart of the database, or on a laptop that
slept, every session looks expired, and none is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Lost, Released
from tidemill.domain.identifiers import SECOND, SessionId, Token
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import Cancels
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.sessions import AttachedSession

log = logging.getLogger(__name__)

FULL_SCAN_SECONDS = 0.1
PRUNE_SECONDS = 300.0
SESSION_KEPT = 3_600 * SECOND
"""How long a session that ended is remembered: its worker might still come back."""


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
        """Renew, again and again; nothing else delays it."""
        renewed_at = self._desk.clock.monotonic() - self._desk.config.renew_seconds
        while True:
            due = self._desk.clock.monotonic() - renewed_at >= self._desk.config.renew_seconds
            if due:
                renewed_at = self._desk.clock.monotonic()
            if due or self._to_cut:
                await self._guarded(self.renew)
            await self._desk.clock.sleep(self._desk.config.scan_seconds)

    async def watch_lost(self) -> None:
        """Reap, again and again; at once when there was more than one look could tell."""
        while True:
            full = await self._guarded(self.reap) >= self._desk.config.scan_items_max
            await self._desk.clock.sleep(
                FULL_SCAN_SECONDS if full else self._desk.config.scan_seconds
            )

    async def prune(self) -> None:
        """Forget sessions that ended long ago, again and again."""
        while True:
            await self._desk.clock.sleep(PRUNE_SECONDS)
            async with self._desk.store.transaction() as tx:
                await tx.sessions.prune(await tx.now() - SESSION_KEPT)

    async def compare(self) -> None:
        """Compare grants with holdings, again and again."""
        while True:
            await self._desk.clock.sleep(self._desk.config.reconcile_seconds)
            for session in self._desk.sessions.all():
                await self._guarded_reconcile(session)

    async def renew(self) -> int:
        """Move the expiry of the sessions heard from, and drop those that are closed."""
        heard = self._desk.sessions.heard_from()
        if heard:
            ttl = round(self._desk.config.session_ttl_seconds * SECOND)
            alive = await self._desk.store.renew_sessions([one.id for one in heard], ttl)
            for session in heard:
                session.in_doubt = False
                if session.id not in alive:
                    session.end()
        if self._to_cut:
            cut = frozenset(self._to_cut)
            left = round(self._desk.config.lost_stream_seconds * SECOND)
            await self._desk.store.renew_sessions(sorted(cut), left)
            self._to_cut -= cut
        return len(heard)

    async def reap(self) -> int:
        """Note the tasks of lost sessions for the next turn; return how many."""
        expired = self._continuity.lasted(self._desk.config.session_ttl_seconds)
        lost = await self._desk.store.watch.lost_tasks(
            self._desk.config.scan_items_max, expired=expired
        )
        self._desk.inbox.offer(
            TaskItem(token=task.token, event=Lost(task.token.epoch, task.session_id))
            for task in lost
        )
        return len(lost)

    async def reconcile(self, session: AttachedSession) -> int:
        """Compare what the store says was granted with what the worker says it holds.

        A row that the worker has not held for longer than the start bound is released, unspent:
        its assignment was never sent, or never arrived. What the worker holds without a row, or
        with one that asks to stop, it is told to stop. Each word of the worker is compared once,
        and says nothing of what was granted after it.
        """
        said_at, session.held_at = session.held_at, None
        if said_at is None:
            return 0
        held = session.held
        stored = await self._desk.store.watch.held_by(session.id)
        if self._desk.sessions.get(session.id) is not session:
            return 0  # gone meanwhile: what it said is no news any more
        tokens = {task.token for task in stored}
        strays = {token for token in session.granted if token not in tokens}
        unheld = {
            token
            for token in tokens | strays
            if token not in held and session.granted.get(token, said_at) <= said_at
        }
        overdue = session.missing_for(
            unheld, self._desk.clock.monotonic(), self._desk.config.start_bound_seconds
        )
        self._desk.inbox.put_own(
            TaskItem(token=token, event=Released(token.epoch)) for token in sorted(overdue & tokens)
        )
        for token in overdue:
            session.give_up(token)
        stopping = {task.token for task in stored if task.cancelling}
        self._correct(session, held, (stopping | strays) & held, tokens)
        return len(overdue)

    def _correct(
        self,
        session: AttachedSession,
        held: frozenset[Token],
        to_stop: set[Token],
        stored: set[Token],
    ) -> None:
        if to_stop:
            session.send(Cancels(tuple(sorted(to_stop))))
        unreported = (stored & held) - session.granted.keys()
        if session.unreported_again(unreported) and not session.pending:
            session.end()  # its report was lost in here: let the worker come back and repeat it

    async def _guarded(self, look: Callable[[], Awaitable[int]]) -> int:
        try:
            count = await look()
        except Unavailable as error:
            self._continuity.missed()
            log.warning("sessions could not be kept: %s", error)
            return 0
        self._continuity.reached()
        return count

    async def _guarded_reconcile(self, session: AttachedSession) -> None:
        try:
            await self.reconcile(session)
        except Unavailable as error:
            log.warning("grants of %s could not be compared: %s", session.worker, error)
