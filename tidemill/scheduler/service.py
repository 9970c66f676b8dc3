"""The scheduler: turns, and the duties that feed them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from tidemill.domain.errors import CommitUnknown, MalformedRun, Unavailable
from tidemill.domain.events import Succeeded
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.engine.plans import PlansMissing
from tidemill.ports.bus import Bus, Hint
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import ReadyLane, Store
from tidemill.protocol.messages import ProgressReport, SchedulerMessage, WorkerMessage
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.dispatch import Dispatch
from tidemill.scheduler.door import WorkerDoor
from tidemill.scheduler.inbox import Item
from tidemill.scheduler.keeper import Keeper
from tidemill.scheduler.logs import LogKeeper
from tidemill.scheduler.timers import Timers
from tidemill.scheduler.turn import Turn, TurnResult

log = logging.getLogger(__name__)

REASON_CHARACTERS_MAX = 1_000


class Scheduler:
    """Decides what runs where, one turn after the other. Any number may share a store."""

    def __init__(
        self,
        *,
        name: str,
        store: Store,
        bus: Bus,
        clock: Clock,
        entropy: Entropy,
        config: SchedulerConfig,
    ) -> None:
        self.desk = Desk(name, store, bus, clock, entropy, config)
        self._keeper = Keeper(self.desk)
        self._timers = Timers(self.desk)
        self._logs = LogKeeper(self.desk)
        self._dispatch = Dispatch(self.desk)
        self._door = WorkerDoor(self.desk, self._keeper, self._logs)
        self._draining = False

    def attach(self, incoming: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Serve the stream of one worker: the Door."""
        return self._door.attach(incoming)

    def progress(self) -> Mapping[TaskKey, ProgressReport]:
        """How far the attempts that run here have come, as far as they say."""
        return {
            token.key: report
            for session in self.desk.sessions.all()
            for token, report in session.progress.items()
        }

    def drain(self) -> None:
        """Grant nothing any more; what runs may end."""
        self._draining = True

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as duties:
            duties.create_task(self._take_turns())
            duties.create_task(self._forever(self._follow_hints))
            duties.create_task(self._forever(self._look_around))
            duties.create_task(self._forever(self._keeper.keep_alive))
            duties.create_task(self._forever(self._keeper.compare))
            duties.create_task(self._forever(self._timers.watch_due))
            duties.create_task(self._forever(self._timers.watch_unsettled))
            duties.create_task(self._forever(self._logs.run))

    async def close(self) -> None:
        """Write what is left to write; call it after `run` has been cancelled."""
        await self._logs.step()

    # Duties

    async def _forever(self, duty: Callable[[], Awaitable[None]]) -> None:
        """Keep a duty going: an error in one of them must not end the others."""
        while True:
            try:
                await duty()
            except Unavailable as error:
                log.warning("%s: %s", duty.__qualname__, error)
            except Exception:
                log.exception("%s failed and begins anew", duty.__qualname__)
            await self.desk.clock.sleep(self.desk.config.retry_seconds_max)

    async def _follow_hints(self) -> None:
        async with self.desk.bus.hints() as hints:
            async for hint in hints:
                self.desk.backlog.note(ReadyLane(lane, alone=False) for lane in hint.lanes)
                if hint.lanes or hint.runs:
                    self.desk.inbox.go_on(hint.runs)

    async def _look_around(self) -> None:
        while True:
            self.desk.backlog.refresh(await self.desk.store.watch.ready_lanes())
            if self.desk.backlog:
                self.desk.inbox.wake()
            await self.desk.clock.sleep(self.desk.config.look_seconds)

    # Turns

    async def _take_turns(self) -> None:
        while True:
            if not self._can_grant():
                await self.desk.inbox.wait()
            if self.desk.look_wanted:
                await self._guarded_look()
            items, patient = self.desk.inbox.take(self.desk.config.turn_items_max)
            if items or self._can_grant():
                await self._take_turn(items, patient=patient)

    def _can_grant(self) -> bool:
        if self._draining:
            return False
        lanes = [ready.lane for ready, _ in self.desk.backlog.lanes(alone=False)]
        alone = [ready.lane for ready, _ in self.desk.backlog.lanes(alone=True)]
        return any(
            (session.free and any(session.serves(lane.namespace, lane.route) for lane in lanes))
            or (session.idle and any(session.serves(one.namespace, one.route) for one in alone))
            for session in self.desk.sessions.all()
        )

    async def _guarded_look(self) -> None:
        self.desk.look_wanted = False
        try:
            self.desk.backlog.refresh(await self.desk.store.watch.ready_lanes())
        except Unavailable as error:
            log.warning("READY tasks could not be looked for: %s", error)

    async def _take_turn(self, items: Sequence[Item], *, patient: bool) -> None:
        """One turn, until it is committed, or its culprit is found."""
        tries = 0
        while True:
            try:
                result = await self._turn(items, patient=patient)
            except PlansMissing as missing:
                await self._guarded_load(missing)
            except MalformedRun as error:
                await self._quarantine(RunId(error.run_id), str(error))
                items = [item for item in items if item.run_id != error.run_id]
            except Unavailable as error:
                tries += 1
                await self._back_off(error, tries)
            except Exception as error:
                log.exception("a turn of %d items failed", len(items))
                await self._isolate(items, error, patient=patient)
                return
            else:
                await self._conclude(items, result)
                return

    async def _turn(self, items: Sequence[Item], *, patient: bool) -> TurnResult:
        if not self.desk.backlog.lanes(alone=True):
            for session in self.desk.sessions.all():
                session.reserved = False
        turn = Turn(
            items,
            patient=patient,
            plans=self.desk.plans,
            chance=self.desk.entropy.fraction,
            rows_max=self.desk.config.turn_rows_max,
        )
        sessions = [] if self._draining else self.desk.sessions.all()
        return await turn.run(self.desk.store, sessions, self.desk.backlog)

    async def _guarded_load(self, missing: PlansMissing) -> None:
        try:
            await self.desk.plans.load(self.desk.store.payloads, missing.version_ids)
        except Unavailable as error:
            await self._back_off(error, 1)

    async def _back_off(self, error: Unavailable, tries: int) -> None:
        if not isinstance(error, CommitUnknown):
            log.info("a turn is tried again: %s", error)
        longest = min(0.01 * 2**tries, self.desk.config.retry_seconds_max)
        await self.desk.clock.sleep(longest * (0.5 + 0.5 * self.desk.entropy.fraction()))

    async def _isolate(self, items: Sequence[Item], error: Exception, *, patient: bool) -> None:
        """Halve a batch that cannot be committed until the culprit stands alone."""
        runs = sorted({item.run_id for item in items})
        if not runs:
            await self.desk.clock.sleep(self.desk.config.retry_seconds_max)
        elif len(runs) == 1:
            await self._quarantine(runs[0], f"{type(error).__name__}: {error}")
        else:
            first = set(runs[: len(runs) // 2])
            await self._take_turn([i for i in items if i.run_id in first], patient=patient)
            await self._take_turn([i for i in items if i.run_id not in first], patient=patient)

    async def _quarantine(self, run_id: RunId, reason: str) -> None:
        log.error("run %s is put into quarantine: %s", run_id, reason)
        try:
            async with self.desk.store.transaction() as tx:
                await tx.runs.quarantine(run_id, reason[:REASON_CHARACTERS_MAX])
        except Unavailable as error:
            await self._back_off(error, 1)

    async def _conclude(self, items: Sequence[Item], result: TurnResult) -> None:
        """All that may only happen after the commit."""
        self._dispatch.count(result)
        self.desk.backlog.learn(result.looks)
        self.desk.backlog.note(result.waiting)
        self.desk.inbox.put_back(result.missed)
        self.desk.inbox.go_on(result.again)
        if result.due_in is not None:
            self._timers.set(result.due_in)
        self._dispatch.answer(items, result)
        await self._dispatch.send_assignments(result.grants, _results_of(result))
        lanes = sorted(ready.lane for ready in result.waiting if not ready.alone)
        await self.desk.bus.send_hint(Hint(lanes=tuple(lanes)))


def _results_of(result: TurnResult) -> dict[TaskKey, bytes]:
    return {
        item.token.key: item.event.result
        for item in result.applied
        if isinstance(item.event, Succeeded) and item.event.result is not None
    }
