"""The turn: one batch of what has arrived, one transaction, and what follows from it.

0. Lock the sessions, then the runs of the batch; items of runs that others hold go back.
1. Apply what happened, guarded by state and epoch; what comes too late is stale.
2. Tell children, in memory, from the definition.
3. Settle runs without open tasks.
4. Admit and grant.
5. Append all facts as one row of the outbox, last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidemill.domain.events import Bound, Due, Lost, Released
from tidemill.domain.identifiers import Lane, Moment, RunId, SessionId, TaskKey, Token
from tidemill.domain.ledger import Ledger
from tidemill.domain.pools import is_pool
from tidemill.domain.task_run import ALONE, ENDED, GRANTED, Reason, TaskRun, TaskState
from tidemill.engine.book import Book
from tidemill.engine.plans import Plans
from tidemill.ports.store import Opening, ReadyLane, Store, Transaction
from tidemill.scheduler.admission import Admission, Grant, Seats, lane_of
from tidemill.scheduler.backlog import Backlog, LaneLook
from tidemill.scheduler.foresight import Foresight
from tidemill.scheduler.inbox import Item, RunItem, TaskItem
from tidemill.scheduler.pools import Pool
from tidemill.scheduler.sessions import AttachedSession

_OF_SESSIONS = (Lost, Bound)
"""Events that depend on whether a session is alive."""

_TAKING = (Due, Lost)
"""Events that take a task away from a worker that runs it."""


class Holders(NamedTuple):
    """Who may be granted something in a turn."""

    sessions: Sequence[AttachedSession] = ()
    pools: Sequence[Pool] = ()


class Means(NamedTuple):
    """What every turn of one scheduler works with."""

    plans: Plans
    foresight: Foresight
    chance: Callable[[], float]
    rows_max: int


class TurnResult(msgspec.Struct, kw_only=True):
    """What a committed turn leaves to be done outside the store."""

    grants: list[Grant] = []
    inputs: Mapping[RunId, bytes] = {}  # of the runs of what was claimed, where they are small
    stale: list[TaskItem] = []
    applied: list[TaskItem] = []
    revoked: list[tuple[SessionId, Token]] = []  # grants whose workers must be told to stop
    missed: list[Item] = []
    unheard: list[TaskItem] = []  # of sessions that may not be alive: not answered
    freed: Counter[SessionId] = msgspec.field(default_factory=Counter)  # whose grants ended
    freed_by: dict[RunId, list[SessionId]] = {}  # by tasks of these that ended
    counted: set[SessionId] = set()  # pools whose free slots are known from the store
    doubtful: list[AttachedSession] = []  # closed or expired, as the store sees it
    unserved: list[Lane] = []  # lanes of suspects that found no idle worker
    again: list[RunId] = []
    waiting: set[ReadyLane] = set()
    returned: set[ReadyLane] = set()  # lanes of tasks that came back after a long time
    looks: list[LaneLook] = []
    due_in: set[int] = set()  # microseconds until the timers of what this turn touched


class Turn:
    """One batch and the means to carry it out. Running it twice is harmless."""

    def __init__(
        self, items: Sequence[Item], means: Means, *, patient: bool, claims_max: int
    ) -> None:
        self.items = items
        self.patient = patient
        self._means = means
        self._claims_max = claims_max
        self._admission: Admission | None = None
        self._seats = Seats(())

    @property
    def claimed(self) -> set[RunId]:
        """Runs of the tasks that the last try has claimed from the store."""
        return set() if self._admission is None else self._admission.claimed

    def drop(self, run_id: str) -> list[Item]:
        """Leave the items of one run out of the batch; return them."""
        dropped = [item for item in self.items if item.run_id == run_id]
        self.items = [item for item in self.items if item.run_id != run_id]
        return dropped

    async def run(self, store: Store, holders: Holders, backlog: Backlog) -> TurnResult:
        """Carry the batch out in one transaction."""
        try:
            return await self._run(store, holders, backlog)
        except BaseException:
            backlog.look_again([] if self._admission is None else self._admission.looks)
            raise
        finally:
            self._seats.leave()

    async def _run(self, store: Store, holders: Holders, backlog: Backlog) -> TurnResult:
        sessions, pools = holders
        means = self._means
        seats = self._seats = Seats(sessions)
        self._admission = None
        async with store.transaction() as tx:
            opening = self._opening(sessions)
            now, alive, runs, tasks = await tx.open(opening)
            book = Book(tx, means.plans, now, means.chance, means.rows_max)
            book.open_locked(runs, tasks)
            doubtful = set(seats.promised) - alive
            result = TurnResult(doubtful=[one for one in sessions if one.id in doubtful])
            await self._apply(book, alive, result)
            await book.follow()
            counted = await self._count(tx, pools, book, backlog, result)
            seats.settle(alive, counted)
            admission = Admission(tx, book, seats, backlog, self._claims_max)
            self._admission = admission
            await admission.admit(result.freed_by)
            await book.write()
        self._conclude(book, admission, result)
        return result

    def _opening(self, sessions: Sequence[AttachedSession]) -> Opening:
        runs = {item.run_id for item in self.items}
        tasks = {item.token.key for item in self.items if isinstance(item, TaskItem)}
        children_of = self._means.foresight.children_of
        tasks |= {TaskKey(key.run_id, child) for key in tasks for child in children_of(key)}
        return Opening(self._sessions_to_lock(sessions), runs, tasks, self.patient)

    def _sessions_to_lock(self, sessions: Sequence[AttachedSession]) -> set[SessionId]:
        events = (item.event for item in self.items if isinstance(item, TaskItem))
        named = {event.session_id for event in events if isinstance(event, _OF_SESSIONS)}
        return named.union(self._seats.promised, (one.id for one in sessions if one.reserved))

    async def _count(
        self,
        tx: Transaction,
        pools: Sequence[Pool],
        book: Book,
        backlog: Backlog,
        result: TurnResult,
    ) -> list[Pool]:
        """Of the pools that could be granted something: those that can, their free slots counted.

        Counted under a lock on the pool, which lasts until the grants are committed.
        """
        hopeful = [pool for pool in pools if pool.free or pool.freed_of(result.freed)]
        lanes = _lanes(book, backlog) if hopeful else ()
        asked = [pool for pool in hopeful if any(pool.serves(*lane[:2]) for lane in lanes)]
        if not asked:
            return []
        members = {member for pool in asked for member in pool.members}
        granted = await tx.sessions.count_granted([pool.id for pool in asked], sorted(members))
        counted = [pool for pool in asked if pool.id in granted]
        for pool in counted:
            pool.count(granted, result.freed)
            result.counted.add(pool.id)
        for pool in asked:
            if pool.id not in granted:
                pool.lose_row()
        return counted

    async def _apply(self, book: Book, alive: set[SessionId], result: TurnResult) -> None:
        here = [item for item in self.items if item.run_id in book.ledgers]
        self._set_aside([item for item in self.items if item.run_id not in book.ledgers], result)
        await book.take_up(item.run_id for item in here if isinstance(item, RunItem))
        for item in here:
            if isinstance(item, TaskItem):
                _let_happen(book.ledgers[item.run_id], item, alive, result)
            elif item.stop is not None:
                _stop(book.ledgers[item.run_id], item.stop)

    def _set_aside(self, absent: Sequence[Item], result: TurnResult) -> None:
        if self.patient:
            # Waited for and still not there: the run is gone, or in quarantine.
            result.stale += [item for item in absent if isinstance(item, TaskItem)]
        else:
            result.missed += absent

    def _conclude(self, book: Book, admission: Admission, result: TurnResult) -> None:
        result.grants = admission.grants
        result.inputs = admission.inputs
        result.looks = admission.looks
        result.unserved = admission.unserved
        result.waiting = admission.waiting
        for run_id, ledger in book.ledgers.items():
            # Of a paused run that was only looked at, something was claimed: it is not held yet.
            if (run_id in book.locked or ledger.is_paused) and ledger.unfinished:
                result.again.append(run_id)
            if ledger.run.due_at is not None:
                result.due_in.add(ledger.run.due_at - book.now)
        for task in book.changed:
            if task.hold == ALONE and task.state is TaskState.READY:
                result.waiting.add(ReadyLane(lane_of(task), alone=True))
            elif task.state is TaskState.CANCELLING and task.session_id is not None:
                result.revoked.append((task.session_id, task.token))
            # What a pool holds is usually taken up in time: the regular scans look after it.
            if task.due_at is not None and not is_pool(task.session_id):
                result.due_in.add(task.due_at - book.now)


def _let_happen(ledger: Ledger, item: TaskItem, alive: set[SessionId], result: TurnResult) -> None:
    event = item.event
    if isinstance(event, Lost) and event.session_id in alive:
        return  # renewed since the timer looked
    if isinstance(event, Bound) and event.session_id not in alive:
        result.unheard.append(item)  # long dead, or about to be renewed: then it asks again
        return
    before = ledger.task(item.token.position)
    refused = isinstance(event, Bound) and ledger.is_paused and _is_unbound(before)
    if refused and isinstance(event, Bound):
        event = Released(event.epoch)  # nobody has begun it: it waits until the run is resumed
    happened = _may_say(item, ledger, before) and ledger.happen(item.token.position, event)
    (result.applied if happened and not refused else result.stale).append(item)
    if not happened:
        return
    after = ledger.task(item.token.position)
    if before is not None and before.session_id and after and after.session_id is None:
        result.freed[before.session_id] += 1
        if after.state in ENDED:
            result.freed_by.setdefault(item.run_id, []).append(before.session_id)
        elif after.state is TaskState.READY and not isinstance(event, Released):
            result.returned.add(ReadyLane(lane_of(after), alone=after.hold == ALONE))
    if before is not None and isinstance(event, _TAKING) and before.state in GRANTED:
        assert before.session_id is not None
        result.revoked.append((before.session_id, before.token))


def _is_unbound(task: TaskRun | None) -> bool:
    return task is not None and is_pool(task.session_id)


def _may_say(item: TaskItem, ledger: Ledger, task: TaskRun | None) -> bool:
    """A worker has no say in another namespace, nor in what another worker of its pool runs."""
    if item.namespace not in {None, ledger.run.namespace}:
        return False
    return item.holder is None or (task is not None and task.session_id == item.holder)


def _lanes(book: Book, backlog: Backlog) -> set[Lane]:
    """Where somebody waits, or would without this turn."""
    fresh = {lane_of(task) for one in book.ledgers.values() for task in one.ready_tasks()}
    return fresh.union(ready.lane for ready in backlog.ready())


def _stop(ledger: Ledger, reason: Reason) -> None:
    if reason is not Reason.TIMEOUT or _time_is_over(ledger, ledger.now):
        ledger.stop(reason)


def _time_is_over(ledger: Ledger, now: Moment) -> bool:
    return ledger.run.due_at is not None and ledger.run.due_at <= now
