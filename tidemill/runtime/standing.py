"""How a serving process stands: what its health tells about its store, bus, scheduler and relay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from tidemill.domain.errors import TidemillError
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.runtime.health import Health
from tidemill.runtime.parts import Parts
from tidemill.runtime.probing import PROBE_SECONDS, bus_trouble, via_trouble
from tidemill.runtime.role_configs import relay_config

FRESH_SECONDS = 1.0
FOREIGN_MAX = 100


class Standing:
    """Looks when asked, and not more often than once a second: an idle process asks nothing."""

    def __init__(self, role: str, parts: Parts) -> None:
        self.draining = False
        self._role = role
        self._parts = parts
        self._since: Moment | None = None  # the store has not answered since
        self._last: Health | None = None
        self._looked_at = 0.0
        self._was_draining = False
        self._looking = asyncio.Lock()

    async def look(self) -> Health:
        """The health of this process; those who ask while it is looked at get the same answer."""
        async with self._looking:
            if self._last is None or self._is_old():
                self._was_draining = self.draining
                self._last = await self._look()
                self._looked_at = self._parts.clock.monotonic()
            return self._last

    def _is_old(self) -> bool:
        age = self._parts.clock.monotonic() - self._looked_at
        return age >= FRESH_SECONDS or self._was_draining != self.draining

    async def _look(self) -> Health:
        if not self._parts.is_open:
            return Health(role=self._role, reasons=["store: not reached yet"])
        store, *away = await asyncio.gather(
            self._store_trouble(),
            bus_trouble(self._parts.settings),
            via_trouble(self._parts.settings),
        )
        lag = self._lag()
        reasons = [store, "draining" if self.draining else ""]
        if not away[0]:
            away[0] = self._publishing_trouble()
        notes = [*away, *self._notes(), "" if store else await self._foreign_rows()]
        # Facts that leave late keep nobody from working: only their own role is not ready.
        (reasons if self._role == "notifier" else notes).append(lag)
        return Health(
            role=self._role,
            reasons=[text for text in reasons if text],
            notes=[text for text in notes if text],
        )

    def _lag(self) -> str:
        relay = self._parts.relay
        if relay is None or relay.lag() <= relay_config(self._parts.settings).rows_behind_max:
            return ""
        return f"relay: {relay.lag():,} rows of facts wait to be published"

    def _publishing_trouble(self) -> str:
        since = self._parts.relay.state.bus_down_since if self._parts.relay is not None else None
        if since is None:
            return ""
        return f"bus: takes no facts since {_clock(since)}; they wait in the outbox"

    def _notes(self) -> list[str]:
        notes = [f"store: {alarm}"] if (alarm := self._parts.store.alarm()) else []
        if self._parts.relay is not None:
            leads = self._parts.relay.state.leading
            notes.append("relay: leads" if leads else "relay: another one leads")
        if self._parts.scheduler is not None:
            desk = self._parts.scheduler.desk
            notes.append(f"workers: {len(desk.sessions)} connected")
            if self._parts.settings.via is not None:
                notes.append(f"workers: {len(desk.pools.sessions())} heard of over the broker")
        return notes

    async def _foreign_rows(self) -> str:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                count = await self._parts.store.watch.foreign_runs(FOREIGN_MAX)
        except (TidemillError, TimeoutError):
            return ""
        more = " or more" if count == FOREIGN_MAX else ""
        return f"runs: {count}{more} of a later release, left to it" if count else ""

    async def _store_trouble(self) -> str:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._parts.store.watch.due_runs(1)
        except (TidemillError, TimeoutError) as error:
            self._since = self._since or self._parts.clock.now()
            what = " ".join(str(error).split()) or "no answer"
            return f"store: unreachable since {_clock(self._since)} ({what})"
        self._since = None
        return ""


def _clock(moment: Moment) -> str:
    return datetime.fromtimestamp(moment / SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
