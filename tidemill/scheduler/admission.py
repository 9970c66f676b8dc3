"""Admission: which READY tasks get which free slots. The one step through which every grant goes.

Tasks made READY in this very transaction are granted at once, in the same write, when nothing of
equal or higher standing waits for the same workers. When something of equal standing does, a run
keeps the very slots that its ended tasks held for the tasks that follow them: what was begun is
brought to its end, without a row written and read again for every step. Of those that a lane could
fill, one in eight is never kept, nor is a single one, so that whoever waits gets on. What slots
remain are filled from the store, lane by lane, highest priority first.

A task that has lost several sessions is suspected to kill its worker. It waits on hold and is
granted only to an idle worker, which then gets nothing else: if it kills again, it dies alone.
When no worker is idle, one is reserved and gets nothing more until it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from tidemill.domain.identifiers import Lane, RunId, SessionId
from tidemill.domain.plan import Plan
from tidemill.domain.task_run import ALONE, TaskRun, TaskState
from tidemill.engine.book import Book
from tidemill.ports.store import ReadyLane, Transaction
from tidemill.scheduler.backlog import Backlog, Belief, LaneLook
from tidemill.scheduler.pools import Pool
from tidemill.scheduler.sessions import AttachedSession

NOT_KEPT = 8
"""Of so many free slots, or fewer, one goes to who has waited for longest."""

RESERVED_SECONDS = 15.0
"""How long a busy worker is kept free of new work for a suspect; it may not become idle in time."""

RESTED_SECONDS = 45.0
"""How long a worker that was reserved in vain is left alone."""


Holder: TypeAlias = AttachedSession | Pool
"""Who can be granted tasks."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A task granted in this transaction, to be sent to its worker after the commit."""

    session: Holder
    task: TaskRun
    plan: Plan
    workflow: str
    alone: bool


class Seats:
    """Free slots that one transaction may fill.

    Those of sessions are promised to it from its beginning until it leaves them: a turn beside it
    fills what becomes free meanwhile. Those of pools are counted under a lock, later.
    """

    def __init__(self, sessions: Iterable[AttachedSession]) -> None:
        self._sessions: list[Holder] = list(sessions)
        self._idle = {session.id for session in self._sessions if session.idle}
        self._free = {session.id: session.free for session in self._sessions}
        self._taken = dict.fromkeys(self._free, 0)
        self._rooms: dict[tuple[SessionId, str], int] = {}  # before anything was taken
        self._serving_by_place: dict[tuple[str, str], list[Holder]] = {}
        self._promised = [(session, session.free) for session in sessions if session.free]
        for session, slots in self._promised:
            session.promised += slots

    @property
    def promised(self) -> list[SessionId]:
        """Sessions with free slots."""
        return [session.id for session, _ in self._promised]

    def settle(self, alive: Collection[SessionId], pools: Sequence[Pool]) -> None:
        """From here on these are there to be granted something."""
        self._sessions = [one for one in self._sessions if one.id in alive]
        self._sessions += pools
        self._idle |= {pool.id for pool in pools if pool.idle}
        self._free |= {pool.id: pool.free for pool in pools}
        self._taken |= dict.fromkeys((pool.id for pool in pools), 0)

    def leave(self) -> None:
        """The transaction is over: what it granted is counted by its grants."""
        for session, slots in self._promised:
            session.promised -= slots
        self._promised = []

    def keepable(self, lane: Lane) -> int:
        """How many slots for tasks of a lane may stay with the runs whose tasks ended in them."""
        free = self.count(lane)
        return free - -(-free // NOT_KEPT)

    def count(self, lane: Lane) -> int:
        """Free slots for tasks of a lane."""
        return sum(self._room(session, lane) for session in self.serving(lane))

    def take(self, lane: Lane) -> Holder | None:
        """A slot for a task of the lane, where most are free."""
        serving = self.serving(lane)
        if not serving:
            return None
        best = serving[0]
        if len(serving) > 1:
            best = max(serving, key=lambda one: self._room(one, lane))
        return self._take(best, lane)

    def take_again(self, lane: Lane, holders: list[SessionId]) -> Holder | None:
        """The slot of a task that ended at one of these, for a task of the lane; it is struck."""
        for one in self.serving(lane) if holders else ():
            if one.id in holders:
                holders.remove(one.id)
                return self._take(one, lane)
        return None

    def give_back(self, session: Holder) -> None:
        """Return a slot that was taken for nothing."""
        self._free[session.id] += 1
        self._taken[session.id] -= 1

    def idle(self, lane: Lane) -> list[Holder]:
        """Workers that run nothing and may run tasks of the lane."""
        return [session for session in self.serving(lane) if session.id in self._idle]

    def take_whole(self, session: Holder) -> None:
        """Give an idle worker to a single task; one of a pool leaves the others as they are."""
        self._free[session.id] = self._free[session.id] - 1 if isinstance(session, Pool) else 0
        self._taken[session.id] += 1
        self._idle.discard(session.id)

    def serving(self, lane: Lane) -> list[Holder]:
        """Who may run tasks of a lane."""
        place = lane.namespace, lane.route
        if place not in self._serving_by_place:
            found = [one for one in self._sessions if one.serves(*place)]
            self._serving_by_place[place] = found
        return self._serving_by_place[place]

    def _take(self, holder: Holder, lane: Lane) -> Holder | None:
        if self._room(holder, lane) <= 0:
            return None
        self._free[holder.id] -= 1
        self._taken[holder.id] += 1
        self._idle.discard(holder.id)
        return holder

    def _room(self, holder: Holder, lane: Lane) -> int:
        """Free slots for the lane; of a pool, those of the workers that offer what it needs."""
        if isinstance(holder, AttachedSession):
            return self._free[holder.id]
        place = holder.id, lane.route
        if place not in self._rooms:
            self._rooms[place] = holder.room(lane.route)
        return max(0, min(self._free[holder.id], self._rooms[place] - self._taken[holder.id]))


class Admission:
    """The admission step of one transaction."""

    def __init__(
        self, tx: Transaction, book: Book, seats: Seats, backlog: Backlog, claims_max: int
    ) -> None:
        self.claimed: set[RunId] = set()  # runs of the tasks that were claimed from the store
        self.inputs: dict[RunId, bytes] = {}  # of those runs, where they are small
        self.grants: list[Grant] = []
        self.looks: list[LaneLook] = []
        self.waiting: set[ReadyLane] = set()  # lanes in which this transaction left somebody
        self.unserved: list[Lane] = []  # lanes of suspects that found no idle worker
        self._tx = tx
        self._book = book
        self._seats = seats
        self._backlog = backlog
        self._claims_left = claims_max
        self._rivals: dict[Lane, int | None] = {}
        self._keepable: dict[Lane, int] = {}

    async def admit(self, freed: Mapping[RunId, list[SessionId]]) -> None:
        """Grant what can be granted; runs may keep the slots in which tasks of theirs ended."""
        await self._admit_suspects()
        self._admit_fresh(freed)
        await self._admit_waiting()

    def _admit_fresh(self, freed: Mapping[RunId, list[SessionId]]) -> None:
        fresh = [task for ledger in self._book.ledgers.values() for task in ledger.ready_tasks()]
        for task in sorted(fresh, key=lambda task: -task.priority):
            lane = lane_of(task)
            rival = self._rival(lane)
            if rival is None:
                session = self._seats.take(lane)
            elif rival == lane.priority:
                session = self._keep(lane, freed.get(task.run_id, []))
            else:
                session = None
            if session is None:
                self.waiting.add(ReadyLane(lane, alone=False))
            else:
                self._grant(task, session)

    def _keep(self, lane: Lane, holders: list[SessionId]) -> Holder | None:
        """A slot that a run may keep although others wait for it."""
        if lane not in self._keepable:
            self._keepable[lane] = self._seats.keepable(lane)
        session = self._seats.take_again(lane, holders) if self._keepable[lane] > 0 else None
        if session is not None:
            self._keepable[lane] -= 1
        return session

    def _rival(self, lane: Lane) -> int | None:
        """The highest priority, this one or above, that waits for the same workers; None if none
        does.
        """
        if lane not in self._rivals:
            others = self._backlog.before(lane)
            mine = {one.id for one in self._seats.serving(lane)} if others else set()
            found = (
                other.priority
                for other in others
                if any(one.id in mine for one in self._seats.serving(other))
            )
            self._rivals[lane] = max(found, default=None)
        return self._rivals[lane]

    async def _admit_waiting(self) -> None:
        claimed: list[tuple[TaskRun, Holder]] = []
        for ready, belief in self._backlog.lanes(alone=False):
            limit = min(self._seats.count(ready.lane), self._claims_left)
            if limit <= 0:
                continue
            tasks = await self._claim(ready, belief, limit)
            for task in tasks:
                session = self._seats.take(ready.lane)
                assert session is not None, "a claim asks for no more than there are seats"
                claimed.append((task, session))
        self._grant_claimed(claimed)

    async def _admit_suspects(self) -> None:
        claimed: list[tuple[TaskRun, Holder]] = []
        for ready, belief in self._backlog.lanes(alone=True):
            idle = self._seats.idle(ready.lane)[: self._claims_left]
            if not idle:
                self.unserved.append(ready.lane)
                continue
            for task, session in zip(
                await self._claim(ready, belief, len(idle)), idle, strict=False
            ):
                self._seats.take_whole(session)
                claimed.append((task, session))
        self._grant_claimed(claimed)

    async def _claim(self, ready: ReadyLane, belief: Belief, limit: int) -> list[TaskRun]:
        self._backlog.begin(ready)
        claim = await self._tx.tasks.claim(
            ready.lane, floor=belief.begin, limit=limit, alone=ready.alone
        )
        self._book.open_seen(claim.runs)
        self.inputs.update(claim.inputs)
        self._claims_left -= len(claim.tasks)
        empty = len(claim.tasks) < limit
        self.claimed.update(task.run_id for task in claim.tasks)
        look = LaneLook(
            lane=ready, version=belief.version, begin=belief.begin, floor=claim.floor, empty=empty
        )
        self.looks.append(look)
        self._backlog.pass_by(look)
        return claim.tasks

    def _grant_claimed(self, claimed: Sequence[tuple[TaskRun, Holder]]) -> None:
        for task, session in claimed:
            if self._is_free(task):
                self._grant(task, session)
            else:
                self._seats.give_back(session)

    def _is_free(self, task: TaskRun) -> bool:
        """Whether nothing in this transaction has moved the claimed row, and its run goes on.

        That of a paused run was not held yet, that of one being stopped not cancelled.
        """
        ledger = self._book.ledgers.get(task.run_id)
        if ledger is None or ledger.is_paused or ledger.is_stopping:
            return False
        self._book.supply([task])
        current = ledger.task(task.position)
        return current is not None and current.state is TaskState.READY

    def _grant(self, task: TaskRun, session: Holder) -> None:
        ledger = self._book.ledgers[task.run_id]
        granted = ledger.grant(task.position, session.id, session.start_seconds)
        self.grants.append(
            Grant(
                session=session,
                task=granted,
                plan=ledger.plan,
                workflow=ledger.run.workflow,
                alone=task.hold == ALONE,
            )
        )


def lane_of(task: TaskRun) -> Lane:
    """Where a READY task waits."""
    return Lane(task.namespace, task.route, task.priority)


def reserve_for(lane: Lane, sessions: Iterable[AttachedSession], now: float) -> None:
    """Keep the least busy worker of a suspect's lane free of new work, for a while."""
    serving = [one for one in sessions if one.serves(lane.namespace, lane.route)]
    rested = [session for session in serving if session.rests_until <= now]
    if rested and not any(session.reserved for session in serving):
        least = min(rested, key=lambda session: len(session.granted))
        least.reserved_until = now + RESERVED_SECONDS


def end_reservations(sessions: Iterable[AttachedSession], now: float, *, wanted: bool) -> None:
    """Let workers have work again that were reserved for long enough, or for nobody any more."""
    for session in sessions:
        if session.reserved_until is not None and (not wanted or session.reserved_until <= now):
            session.reserved_until = None
            session.rests_until = now + RESTED_SECONDS if wanted else now
