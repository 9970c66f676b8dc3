"""Turns, one after the other: when to take one, and what to do with one that fails.

A passing fault is waited out. A batch that fails for any other reason is taken apart until the
run that cannot be committed stands alone; that one is put into quarantine and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tidemill.domain.errors import MalformedRun, Unavailable
from tidemill.domain.events import Succeeded
from tidemill.domain.identifiers import Lane, RunId, TaskKey
from tidemill.engine.plans import PlansMissing
from tidemill.ports.bus import Hint
from tidemill.scheduler.admission import Holder, end_reservations, reserve_for
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.dispatch import Dispatch, Parcel
from tidemill.scheduler.foresight import Foresight
from tidemill.scheduler.inbox import Item
from tidemill.scheduler.timers import Timers
from tidemill.scheduler.turn import Holders, Means, Turn, TurnResult

log = logging.getLogger(__name__)

TRIES_MAX = 12
"""How often a turn is tried, some five seconds in all, before its runs are tried one by one."""

PATIENT_TRIES_MAX = 2


class Turns:
    """The loops of a scheduler that change runs."""

    def __init__(self, desk: Desk, timers: Timers, dispatch: Dispatch) -> None:
        self._desk = desk
        self._timers = timers
        self._dispatch = dispatch
        self._means = Means(
            desk.plans, Foresight(), desk.entropy.fraction, desk.config.turn_rows_max
        )
        self._under_way = 0
        self._draining = False

    def drain(self) -> None:
        """Grant nothing any more; what runs may end."""
        self._draining = True

    async def run(self) -> None:
        """Take turns until cancelled. Several may do so beside each other, for different runs:
        while one waits for the store, another one thinks.
        """
        while True:
            if not self._should_grant():
                await self._desk.inbox.wait()
            if self._desk.look_wanted:
                await self._guarded_look()
            items = self._desk.inbox.take(self._desk.config.turn_items_max)
            if items or self._should_grant():
                await self._take_turn(items)

    async def run_patiently(self) -> None:
        """Take turns for runs that somebody else holds, one run at a time, waiting for its lock.

        Apart from the other turns, so that whoever holds one run for long holds no other up.
        """
        while True:
            items = await self._desk.inbox.take_patient()
            turn = self._turn(items, patient=True, claims_max=0)
            try:
                await self._commit_turn(turn, Holders(), PATIENT_TRIES_MAX)
            except Unavailable as error:
                await self._back_off(error, tries=10)
                self._desk.inbox.be_patient(turn.items)
            except Exception as error:  # noqa: BLE001 - whatever it is, other runs must go on
                await self._desk.quarantine(items[0].run_id, error)
                self._dispatch.answer(items, TurnResult())

    def _should_grant(self) -> bool:
        """Whether some worker could be given something, as far as anyone knows.

        Not while another turn is under way: slots that become free now are best filled by the turn
        that hears of what ended in them.
        """
        if self._draining or self._under_way:
            return False
        sessions = self._desk.sessions.all()
        alone = [ready.lane for ready, _ in self._desk.backlog.lanes(alone=True)]
        end_reservations(sessions, self._desk.clock.monotonic(), wanted=bool(alone))
        lanes = [ready.lane for ready, _ in self._desk.backlog.lanes(alone=False)]
        holders: list[Holder] = [*sessions, *self._desk.pools.open()]
        return any(
            (holder.free and any(_has_room(holder, lane) for lane in lanes))
            or (holder.idle and any(holder.serves(one.namespace, one.route) for one in alone))
            for holder in holders
        )

    async def _guarded_look(self) -> None:
        self._desk.look_wanted = False
        try:
            await self._desk.look()
        except Unavailable as error:
            log.warning("READY tasks could not be looked for: %s", error)

    async def _take_turn(self, items: Sequence[Item]) -> None:
        """One turn, until it is committed; one that cannot be is taken apart."""
        turn = self._turn(items)
        self._under_way += 1
        try:
            await self._commit_turn(turn, self._holders(), TRIES_MAX)
        except Unavailable:
            # The store answers others, or nobody: either way no run must wait for all of these.
            self._desk.inbox.be_patient(turn.items)
        except Exception:
            log.exception("a turn of %d items failed and is taken apart", len(items))
            await self._isolate_item(turn.items)
            await self._isolate_claim()
        finally:
            self._under_way -= 1
            self._desk.inbox.done(items)

    async def _commit_turn(self, turn: Turn, holders: Holders, tries_max: int) -> None:
        """Try a turn until it is committed, or the tries are used up."""
        result = None
        tries = 0
        while result is None:
            try:
                result = await turn.run(self._desk.store, holders, self._desk.backlog)
            except PlansMissing as missing:
                await self._desk.load_plans(missing)
            except MalformedRun as error:
                dropped = turn.drop(error.run_id)
                await self._desk.quarantine(RunId(error.run_id), error)
                self._dispatch.answer(dropped, TurnResult())
            except Unavailable as error:
                tries += 1
                if tries >= tries_max:
                    raise
                await self._back_off(error, tries)
        await self._conclude(turn.items, result)

    def _turn(
        self, items: Sequence[Item], *, patient: bool = False, claims_max: int | None = None
    ) -> Turn:
        if claims_max is None:
            claims_max = self._means.rows_max
        return Turn(items, self._means, patient=patient, claims_max=claims_max)

    def _holders(self) -> Holders:
        if self._draining:
            return Holders()
        return Holders(self._desk.sessions.all(), self._desk.pools.open())

    async def _back_off(self, error: Unavailable, tries: int) -> None:
        log.info("a turn is tried again: %s", error)
        longest = min(0.01 * 2 ** min(tries, 10), self._desk.config.retry_seconds_max)
        await self._desk.clock.sleep(longest * (0.5 + 0.5 * self._desk.entropy.fraction()))

    async def _isolate_item(self, items: Sequence[Item]) -> None:
        """Halve a batch, without claims, until the run that cannot be committed stands alone."""
        runs = sorted({item.run_id for item in items})
        if not runs:
            return
        turn = self._turn(items, claims_max=0)
        try:
            await self._commit_turn(turn, self._holders(), TRIES_MAX)
        except Unavailable:
            self._desk.inbox.be_patient(turn.items)
        except Exception as error:  # noqa: BLE001
            if len(runs) == 1:
                await self._desk.quarantine(runs[0], error)
                self._dispatch.answer(items, TurnResult())
                return
            first = set(runs[: len(runs) // 2])
            await self._isolate_item([item for item in turn.items if item.run_id in first])
            await self._isolate_item([item for item in turn.items if item.run_id not in first])

    async def _isolate_claim(self) -> None:
        """Claim fewer and fewer READY tasks until the one that cannot be granted stands alone."""
        claims_max = self._desk.config.turn_rows_max
        while claims_max:
            claims_max = await self._try_claims(claims_max)

    async def _try_claims(self, claims_max: int) -> int:
        """Grant up to so many; return how many to try next, 0 when the culprit is found."""
        turn = self._turn([], claims_max=claims_max)
        try:
            await self._commit_turn(turn, self._holders(), TRIES_MAX)
        except Unavailable:
            return 0
        except Exception as error:  # noqa: BLE001
            if len(turn.claimed) > 1:
                return min(claims_max, len(turn.claimed)) // 2
            for run_id in turn.claimed:
                await self._desk.quarantine(run_id, error)
            await self._desk.clock.sleep(self._desk.config.retry_seconds_max)
        return 0

    async def _conclude(self, items: Sequence[Item], result: TurnResult) -> None:
        """All that may only happen after the commit."""
        self._dispatch.count(result)
        self._means.foresight.forget(item.token.key for item in result.applied)
        self._means.foresight.note(result.grants)
        self._desk.backlog.learn(result.looks)
        self._desk.backlog.note(result.waiting)
        self._desk.backlog.note(result.returned, whole=True)
        self._desk.inbox.put_back(result.missed)
        self._desk.inbox.go_on(result.again)
        self._timers.set(result.due_in)
        for lane in result.unserved:
            reserve_for(lane, self._desk.sessions.all(), self._desk.clock.monotonic())
        self._dispatch.answer(items, result)
        await self._dispatch.hand_over(Parcel(result.grants, _results_of(result), result.inputs))
        lanes = sorted(ready.lane for ready in result.waiting if not ready.alone)
        stopped = self._dispatch.stopped_elsewhere(result)
        await self._desk.bus.send_hint(Hint(runs=tuple(stopped), lanes=tuple(lanes)))


def _has_room(holder: Holder, lane: Lane) -> bool:
    return holder.serves(lane.namespace, lane.route) and holder.room(lane.route) > 0


def _results_of(result: TurnResult) -> dict[TaskKey, bytes]:
    """Of the runs that something was granted of."""
    runs = {grant.task.run_id for grant in result.grants}
    return {
        item.token.key: b"null" if item.event.result is None else item.event.result
        for item in result.applied
        if item.run_id in runs and isinstance(item.event, Succeeded)
    }
