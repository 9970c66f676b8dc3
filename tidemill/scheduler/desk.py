"""The desk: what all duties of one scheduler share."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tidemill.domain.errors import MalformedRun, Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.engine.plans import Plans, PlansMissing
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import Store
from tidemill.scheduler.backlog import Backlog
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.inbox import Inbox
from tidemill.scheduler.pools import Pools
from tidemill.scheduler.sessions import Sessions

log = logging.getLogger(__name__)

REASON_CHARACTERS_MAX = 1_000

T = TypeVar("T")


@dataclass(slots=True)
class Desk:
    """One scheduler's ports and its memory. Nothing in it outlives the process or has to."""

    name: str
    store: Store
    bus: Bus
    clock: Clock
    entropy: Entropy
    config: SchedulerConfig
    inbox: Inbox = field(init=False)
    plans: Plans = field(default_factory=Plans)
    backlog: Backlog = field(default_factory=Backlog)
    sessions: Sessions = field(default_factory=Sessions)
    pools: Pools = field(init=False)
    look_wanted: bool = False  # READY tasks may have appeared

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.config.inbox_items_max)
        self.pools = Pools(self.name, self.clock, self.config)

    async def look(self) -> None:
        """Learn from the store where READY tasks wait."""
        since = self.backlog.version
        self.backlog.refresh(await self.store.watch.ready_lanes(), since)

    async def load_plans(self, missing: PlansMissing) -> None:
        """Read definitions that a transaction has missed, or wait a little if they cannot be."""
        try:
            await self.plans.load(self.store.payloads, missing.version_ids)
        except Unavailable as error:
            log.warning("definitions could not be read: %s", error)
            await self.pause()

    async def quarantine(self, run_id: RunId, error: Exception) -> None:
        """Put one run out of every scheduler's reach, so that the others go on."""
        reason = (
            str(error) if isinstance(error, MalformedRun) else f"{type(error).__name__}: {error}"
        )
        log.error("run %s is put into quarantine: %s", run_id, reason)
        try:
            async with self.store.transaction() as tx:
                await tx.runs.quarantine(run_id, reason[:REASON_CHARACTERS_MAX])
        except Unavailable as refused:
            log.warning("run %s could not be put into quarantine: %s", run_id, refused)
            await self.pause()

    async def carry_out(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Try a transaction until the store takes it, however long that is."""
        while True:
            try:
                return await operation()
            except PlansMissing as missing:
                await self.load_plans(missing)
            except MalformedRun as error:
                await self.quarantine(RunId(error.run_id), error)
            except Unavailable:
                await self.pause()

    async def pause(self) -> None:
        """Wait a little before trying again, not all at the same moment."""
        await self.clock.sleep(0.05 + 0.2 * self.entropy.fraction())

    def look_soon(self) -> None:
        """READY tasks may have appeared that nobody has told us of."""
        self.look_wanted = True
        self.inbox.wake()
