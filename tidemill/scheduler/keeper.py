"""The keeper: keeps sessions alive, and finds the tasks of those that are not.

A scheduler renews before it expires others, and expires only when its own access to the store has
been uninterrupted for the life of a session: after a restart of the database, or on a laptop that
slept, every session looks expired, and none is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Lost, Released
from tidemill.domain.identifiers import SECOND, RunId, SessionId, Token
from tidemill.domain.pools import is_behind_broker
from tidemill.ports.store import HeldTask, LostTask
from tidemill.protocol.messages import Cancels
from tidemill.scheduler.continuity import Continuity
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.pacing import Pace
from tidemill.scheduler.pools import POOL_LIFE, BrokerWord
from tidemill.scheduler.sessions import AttachedSession, Word

log = logging.getLogger(__name__)

FULL_SCAN_SECONDS = 0.1
END_SECONDS = 0.01  # after the end of a session, so that the store sees it too
ENDS_MAX = 1_000
KEYS_PRUNED = 2_000
KEY_BATCHES_MAX = 500
ORPHANS_SECONDS = 60.0
"""Between looks for tasks whose session has no row: somebody must have deleted it by hand."""

PRUNE_SECONDS = 300.0
SESSION_KEPT = 3_600 * SECOND
"""How long a session that ended is remembered: its worker might still come back."""


class Keeper:
    """Renews sessions, reaps the tasks of lost ones, compares grants with holdings."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._continuity = Continuity(desk.clock, desk.config.session_ttl_seconds / 2)
        self._to_cut: set[SessionId] = set()
        self._cut_wanted = asyncio.Event()
        self._ends: deque[float] = deque(maxlen=ENDS_MAX)  # of sessions that were cut short
        self._overdue = False  # the last renewal failed
        self._orphans_at = 0.0  # when to look for them again
        self._moved: set[RunId] = set()  # of which something runs here
        self._stirred = asyncio.Event()

    def cut_short(self, session_id: SessionId) -> None:
        """The stream of a session ended without goodbye: it has little time to come back."""
        self._to_cut.add(session_id)
        self._cut_wanted.set()

    def look_at(self, run_ids: Collection[RunId]) -> None:
        """Something moved in these runs: what runs of them here may have been stopped."""
        here = {token.run_id for one in self._desk.sessions.all() for token in one.granted}
        self._moved |= here.intersection(run_ids)
        if self._moved:
            self._stirred.set()

    async def keep_alive(self) -> None:
        """Renew, again and again; nothing else delays it."""
        renewed_at = self._desk.clock.monotonic() - self._desk.config.renew_seconds
        while True:
            due = self._desk.clock.monotonic() - renewed_at >= self._desk.config.renew_seconds
            if due:
                renewed_at = self._desk.clock.monotonic()
            if due or self._to_cut or self._overdue:
                await self._guarded(self.renew)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._desk.config.scan_seconds):
                    await self._cut_wanted.wait()
            self._cut_wanted.clear()

    async def watch_lost(self) -> None:
        """Reap, again and again; at once when there was more than one look could tell."""
        while True:
            full = await self._guarded(self.reap) >= self._desk.config.scan_items_max
            await self._desk.clock.sleep(FULL_SCAN_SECONDS if full else self._until_next_reaping())

    def _until_next_reaping(self) -> float:
        """A scan, or less when a session that was cut short is over before."""
        now = self._desk.clock.monotonic()
        while self._ends and self._ends[0] <= now:
            self._ends.popleft()
        first = self._ends[0] if self._ends else now + self._desk.config.scan_seconds
        return min(self._desk.config.scan_seconds, first - now)

    async def prune(self) -> None:
        """Forget what ended long ago, again and again: sessions, pools nobody serves, keys."""
        while True:
            await self._desk.clock.sleep(PRUNE_SECONDS)
            served = [pool.id for pool in self._desk.pools.all() if pool.opened]
            if served:
                await self._desk.store.renew_sessions(served, POOL_LIFE)
            async with self._desk.store.transaction() as tx:
                await tx.sessions.prune(await tx.now() - SESSION_KEPT)
            await self._prune_keys()

    async def _prune_keys(self) -> None:
        """A batch per transaction, for as long as batches are full."""
        for _ in range(KEY_BATCHES_MAX):
            async with self._desk.store.transaction() as tx:
                if await tx.starts.prune_keys(KEYS_PRUNED) < KEYS_PRUNED:
                    return

    async def compare(self) -> None:
        """Compare grants with holdings, again and again."""
        pace = Pace(self._desk.config.reconcile_seconds)
        took = 0.0
        while True:
            await self._desk.clock.sleep(pace.rest_after(took))
            begun = self._desk.clock.monotonic()
            try:
                await self.reconcile()
            except Unavailable as error:
                log.warning("grants could not be compared: %s", error)
            took = self._desk.clock.monotonic() - begun

    async def watch_stopped(self) -> None:
        """Tell workers at once what others have stopped; a comparison would, seconds later."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            moved, self._moved = self._moved, set()
            await self.pass_on_stops(moved)

    async def renew(self) -> int:
        """Move the expiry of the sessions heard from, and drop those that are closed."""
        self._overdue = True
        heard = self._desk.sessions.heard_from()
        behind = self._desk.pools.to_renew()
        if heard or behind:
            ttl = round(self._desk.config.session_ttl_seconds * SECOND)
            wanted = [*(one.id for one in heard), *(one.id for one in behind)]
            alive = await self._desk.store.renew_sessions(wanted, ttl)
            self._desk.pools.close(one for one in behind if one.id not in alive)
            if any(session.in_doubt for session in heard):
                self._desk.inbox.wake()
            for session in heard:
                session.in_doubt = False
                if session.id not in alive:
                    session.end()
        if self._to_cut:
            cut = frozenset(self._to_cut)
            left = round(self._desk.config.lost_stream_seconds * SECOND)
            await self._desk.store.renew_sessions(sorted(cut), left)
            self._to_cut -= cut
            self._ends.append(
                self._desk.clock.monotonic() + self._desk.config.lost_stream_seconds + END_SECONDS
            )
        self._overdue = False
        return len(heard) + len(behind)

    async def reap(self) -> int:
        """Note the tasks of lost sessions for the next turn; return how many."""
        expired = self._continuity.lasted(self._desk.config.session_ttl_seconds)
        limit = self._desk.config.scan_items_max
        lost = await self._desk.store.watch.lost_tasks(limit, expired=expired)
        if self._desk.clock.monotonic() >= self._orphans_at:
            self._orphans_at = self._desk.clock.monotonic() + ORPHANS_SECONDS
            lost = [*lost, *await self._desk.store.watch.orphaned_tasks(limit)]
        self._desk.inbox.offer(
            TaskItem(token=task.token, event=Lost(task.token.epoch, task.session_id))
            for task in lost
            if self._desk.pools.steady or not self._is_served_here(task)
        )
        return len(lost)

    async def reconcile(self) -> int:
        """Compare what the store says was granted with what workers say they hold.

        A row that the worker has not held for longer than the start bound is released, unspent:
        its assignment was never sent, or never arrived. What the worker holds without a row, or
        with one that asks to stop, it is told to stop. Each word of the worker is compared once,
        and says nothing of what was granted after it.
        """
        words = [word for one in self._desk.sessions.all() if (word := one.take_word()) is not None]
        behind = self._desk.pools.to_compare()
        if not words and not behind:
            return 0
        said = [*(word.session.id for word in words), *(one.session.id for one in behind)]
        stored = await self._desk.store.watch.held_by(said)
        for one in behind:
            self._compare_behind_broker(one, stored[one.session.id])
        # One that is gone meanwhile is left out: what it said is no news any more.
        here = [word for word in words if self._desk.sessions.get(word.session.id) is word.session]
        return sum(self._compare(word, stored[word.session.id]) for word in here)

    async def pass_on_stops(self, run_ids: Collection[RunId]) -> None:
        """Ask the workers here to stop what is stopped in these runs, or taken from them."""
        granted = {
            session: [token for token in session.granted if token.run_id in run_ids]
            for session in self._desk.sessions.all()
        }
        asked = {session: tokens for session, tokens in granted.items() if tokens}
        stored = await self._desk.store.watch.held_by([session.id for session in asked])
        for session, tokens in asked.items():
            goes_on = {task.token for task in stored[session.id] if not task.cancelling}
            if over := [token for token in tokens if token not in goes_on]:
                session.send(Cancels(tuple(over)))

    def _compare(self, word: Word, stored: Sequence[HeldTask]) -> int:
        session, held, said_at = word
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

    def _compare_behind_broker(self, word: BrokerWord, stored: Sequence[HeldTask]) -> None:
        """The same for a worker behind the broker, which repeats itself what was not answered."""
        session, held, unbound = word
        tokens = {task.token for task in stored}
        stopping = {task.token for task in stored if task.cancelling}
        self._desk.pools.ask_to_stop(session.id, (held - tokens) | stopping)
        if not self._desk.pools.steady:
            return  # what it said may be old
        overdue = session.missing_for(
            tokens - held - unbound,
            self._desk.clock.monotonic(),
            self._desk.config.start_bound_seconds,
        )
        self._desk.inbox.put_own(
            TaskItem(token=token, event=Released(token.epoch), holder=session.id)
            for token in sorted(overdue)
        )

    def _is_served_here(self, task: LostTask) -> bool:
        """Whether the broker that brings the word of its worker is one that we listen to."""
        return self._desk.pools.serving and is_behind_broker(task.session_id)

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
