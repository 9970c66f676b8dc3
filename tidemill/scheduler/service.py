"""The scheduler: turns, and the duties that feed them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import TaskKey
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.identity import TokenSigner
from tidemill.ports.secrets import Sealing
from tidemill.ports.store import ReadyLane, Store
from tidemill.protocol.messages import ProgressReport, SchedulerMessage, WorkerMessage
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.dispatch import Dispatch
from tidemill.scheduler.door import WorkerDoor
from tidemill.scheduler.keeper import Keeper
from tidemill.scheduler.logs import LogKeeper
from tidemill.scheduler.pacing import Pace
from tidemill.scheduler.pool_door import PoolDoor
from tidemill.scheduler.timers import Timers
from tidemill.scheduler.turns import Turns

log = logging.getLogger(__name__)


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
        self._turns = Turns(self.desk, self._timers, self._dispatch)
        self._door = WorkerDoor(self.desk, self._keeper, self._logs)
        self.pool_door = PoolDoor(self.desk, self._logs)

    def attach(self, incoming: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Serve the stream of one worker: the Door."""
        return self._door.attach(incoming)

    def open_secrets(self, sealing: Sealing | None) -> None:
        """Hand secrets of the store to the workers whose tasks name them."""
        self._dispatch.secrets.sealing = sealing

    def sign_tasks(self, signer: TokenSigner | None) -> None:
        """Give every attempt a token with which it shows other services who calls."""
        self._dispatch.assignments.signer = signer

    def progress(self) -> Mapping[TaskKey, ProgressReport]:
        """How far the attempts that run here have come, as far as they say."""
        reports = [session.progress for session in self.desk.sessions.all()]
        reports += [session.progress for session in self.desk.pools.sessions()]
        return {token.key: report for some in reports for token, report in some.items()}

    def drain(self) -> None:
        """Grant nothing any more; what runs may end."""
        self._turns.drain()

    @property
    def owes_answers(self) -> bool:
        """Whether workers have reported what is not committed yet, or not acknowledged."""
        if len(self.desk.inbox) or self.desk.pools.letters.waiting:
            return True
        return any(one.pending or one.unsent for one in self.desk.sessions.all())

    def dismiss(self) -> None:
        """End the streams of all workers: they take what they run to another scheduler."""
        self.desk.sessions.end([session.id for session in self.desk.sessions.all()])

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as duties:
            for _ in range(self.desk.config.turns_at_once):
                duties.create_task(self._forever(self._turns.run))
            duties.create_task(self._forever(self._turns.run_patiently))
            duties.create_task(self._forever(self._dispatch.run))
            duties.create_task(self._forever(self.pool_door.run))
            duties.create_task(self._forever(self._follow_hints))
            duties.create_task(self._forever(self._look_around))
            duties.create_task(self._forever(self._keeper.keep_alive))
            duties.create_task(self._forever(self._keeper.watch_lost))
            duties.create_task(self._forever(self._keeper.compare))
            duties.create_task(self._forever(self._keeper.watch_stopped))
            duties.create_task(self._forever(self._keeper.prune))
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
                    self.desk.inbox.hear(hint.runs)
                if hint.runs:
                    self._keeper.look_at(hint.runs)
                if hint.missed:
                    self.desk.look_soon()

    async def _look_around(self) -> None:
        pace = Pace(self.desk.config.look_seconds)
        while True:
            begun = self.desk.clock.monotonic()
            await self.desk.look()
            took = self.desk.clock.monotonic() - begun
            if self.desk.backlog:
                self.desk.inbox.wake()
            await self.desk.clock.sleep(pace.rest_after(took))
