"""Turns, one after the other: when to take one, and what to do with one that fails.

A passing fault is waited out. A batch that fails for any other reason is taken apart until the
run that cannot be committed stands alone; that one is put into quarantine and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tidemill.domain.errors import MalformedRun, Unavailable
from tidemill.domain.events import Succeeded
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.engine.plans import PlansMissing
from tidemill.ports.bus import Hint
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.dispatch import Dispatch
from tidemill.scheduler.inbox import Item
from tidemill.scheduler.timers import Timers
from tidemill.scheduler.turn import Turn, TurnResult

log = logging.getLogger(__name__)

REASON_CHARACTERS_MAX = 1_000


class Turns:
    """The one loop of a scheduler that changes runs."""

    def __init__(self, desk: Desk, timers: Timers) -> None:
        self._desk = desk
        self._timers = timers
        self._dispatch = Dispatch(desk)
        self._draining = False

    def drain(self) -> None:
        """Grant nothing any more; what runs may end."""
        self._draining = True

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            if not self._can_grant():
                await self._desk.inbox.wait()
            if self._desk.look_wanted:
                await self._guarded_look()
            items, patient = self._desk.inbox.take(self._desk.config.turn_items_max)
            if items or self._can_grant():
                await self._take_turn(items, patient=patient)

    def _can_grant(self) -> bool:
        if self._draining:
            return False
        lanes = [ready.lane for ready, _ in self._desk.backlog.lanes(alone=False)]
        alone = [ready.lane for ready, _ in self._desk.backlog.lanes(alone=True)]
        return any(
            (session.free and any(session.serves(lane.namespace, lane.route) for lane in lanes))
            or (session.idle and any(session.serves(one.namespace, one.route) for one in alone))
            for session in self._desk.sessions.all()
        )

    async def _guarded_look(self) -> None:
        self._desk.look_wanted = False
        try:
            self._desk.backlog.refresh(await self._desk.store.watch.ready_lanes())
        except Unavailable as error:
            log.warning("READY tasks could not be looked for: %s", error)

    async def _take_turn(self, items: Sequence[Item], *, patient: bool) -> None:
        """One turn, until it is committed; one that cannot be is taken apart."""
        try:
            await self._commit_turn(self._turn(items, patient=patient))
        except Exception:
            log.exception("a turn of %d items failed and is taken apart", len(items))
            await self._isolate_item(items, patient=patient)
            await self._isolate_claim()

    async def _commit_turn(self, turn: Turn) -> None:
        """Try a turn until it is committed, or fails for a reason that no retry can mend."""
        tries = 0
        while True:
            try:
                sessions = [] if self._draining else self._desk.sessions.all()
                result = await turn.run(self._desk.store, sessions, self._desk.backlog)
            except PlansMissing as missing:
                await self._guarded_load(missing)
            except MalformedRun as error:
                await self._quarantine(RunId(error.run_id), str(error), turn.drop(error.run_id))
            except Unavailable as error:
                tries += 1
                await self._back_off(error, tries)
            else:
                await self._conclude(turn.items, result)
                return

    def _turn(self, items: Sequence[Item], *, patient: bool, claims_max: int | None = None) -> Turn:
        if not self._desk.backlog.lanes(alone=True):
            for session in self._desk.sessions.all():
                session.reserved = False
        return Turn(
            items,
            patient=patient,
            plans=self._desk.plans,
            chance=self._desk.entropy.fraction,
            rows_max=self._desk.config.turn_rows_max,
            claims_max=self._desk.config.turn_rows_max if claims_max is None else claims_max,
        )

    async def _guarded_load(self, missing: PlansMissing) -> None:
        try:
            await self._desk.plans.load(self._desk.store.payloads, missing.version_ids)
        except Unavailable as error:
            await self._back_off(error, 1)

    async def _back_off(self, error: Unavailable, tries: int) -> None:
        log.info("a turn is tried again: %s", error)
        longest = min(0.01 * 2 ** min(tries, 10), self._desk.config.retry_seconds_max)
        await self._desk.clock.sleep(longest * (0.5 + 0.5 * self._desk.entropy.fraction()))

    async def _isolate_item(self, items: Sequence[Item], *, patient: bool) -> None:
        """Halve a batch, without claims, until the run that cannot be committed stands alone."""
        runs = sorted({item.run_id for item in items})
        if not runs:
            return
        try:
            await self._commit_turn(self._turn(items, patient=patient, claims_max=0))
        except Exception as error:  # noqa: BLE001
            if len(runs) == 1:
                await self._quarantine(runs[0], f"{type(error).__name__}: {error}", items)
                return
            first = set(runs[: len(runs) // 2])
            await self._isolate_item([i for i in items if i.run_id in first], patient=patient)
            await self._isolate_item([i for i in items if i.run_id not in first], patient=patient)

    async def _isolate_claim(self) -> None:
        """Claim fewer and fewer READY tasks until the one that cannot be granted stands alone."""
        claims_max = self._desk.config.turn_rows_max
        while claims_max:
            claims_max = await self._try_claims(claims_max)

    async def _try_claims(self, claims_max: int) -> int:
        """Grant up to so many; return how many to try next, 0 when the culprit is found."""
        turn = self._turn([], patient=False, claims_max=claims_max)
        try:
            await self._commit_turn(turn)
        except Exception as error:  # noqa: BLE001
            if len(turn.claimed) > 1:
                return min(claims_max, len(turn.claimed)) // 2
            for run_id in turn.claimed:
                await self._quarantine(run_id, f"{type(error).__name__}: {error}", [])
            await self._desk.clock.sleep(self._desk.config.retry_seconds_max)
        return 0

    async def _quarantine(self, run_id: RunId, reason: str, items: Sequence[Item]) -> None:
        log.error("run %s is put into quarantine: %s", run_id, reason)
        try:
            async with self._desk.store.transaction() as tx:
                await tx.runs.quarantine(run_id, reason[:REASON_CHARACTERS_MAX])
        except Unavailable as error:
            await self._back_off(error, 1)
        self._dispatch.answer(items, TurnResult())

    async def _conclude(self, items: Sequence[Item], result: TurnResult) -> None:
        """All that may only happen after the commit."""
        self._dispatch.count(result)
        self._desk.backlog.learn(result.looks)
        self._desk.backlog.note(result.waiting)
        self._desk.inbox.put_back(result.missed)
        self._desk.inbox.go_on(result.again)
        self._timers.set(result.due_in)
        self._dispatch.answer(items, result)
        await self._dispatch.send_assignments(result.grants, _results_of(result))
        lanes = sorted(ready.lane for ready in result.waiting if not ready.alone)
        await self._desk.bus.send_hint(Hint(lanes=tuple(lanes)))


def _results_of(result: TurnResult) -> dict[TaskKey, bytes]:
    return {
        item.token.key: item.event.result
        for item in result.applied
        if isinstance(item.event, Succeeded) and item.event.result is not None
    }
