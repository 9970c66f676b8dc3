"""Reads everything that the bus tells, for as long as the chaos lasts and until it has caught up.

Kafka and Redis keep what is sent while it is away. PostgreSQL's NOTIFY keeps nothing: there it
follows, and may miss some.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.simulation.violation import Violation
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.ports.bus import Bus, Event
from tidemill.protocol.cloud_events import decode_event

WAIT_SECONDS = 0.5


class Listener:
    """Remembers the first time that each event arrived, per run."""

    def __init__(self) -> None:
        self.seen: dict[RunId, list[str]] = {}  # ids of events, in the order of their arrival
        self.events = 0
        self.doubled = 0
        self.losses = 0  # of the connection
        self._known: set[str] = set()

    async def follow(self, bus: Bus) -> None:
        """Listen to a bus that keeps nothing, without end."""
        while True:
            with contextlib.suppress(Unavailable):
                async with bus.subscribe() as events:
                    await self._take_in(events)
            self.losses += 1
            await asyncio.sleep(WAIT_SECONDS)

    async def read(self, values: AsyncIterator[bytes]) -> None:
        """Read what a broker keeps, without end."""
        async for value in values:
            self._note(decode_event(value))

    async def _take_in(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            self._note(event)

    def _note(self, event: Event | None) -> None:
        if event is None:
            return
        self.events += 1
        if event.id in self._known:
            self.doubled += 1
            return
        self._known.add(event.id)
        self.seen.setdefault(event.fact.run_id, []).append(event.id)

    @property
    def distinct(self) -> int:
        """How many different events have arrived."""
        return len(self._known)

    def summary(self, told: dict[RunId, list[str]]) -> dict[str, int]:
        """What the report says about it."""
        return {
            "told": sum(len(ids) for ids in told.values()),
            "arrived": self.events,
            "distinct": self.distinct,
            "doubled": self.doubled,
            "connections_lost": self.losses,
        }

    def check(self, told: dict[RunId, list[str]], *, complete: bool) -> list[Violation]:
        """I6: what arrived is in order per run, and where the bus keeps things, nothing is missing.

        A fact that was published again after a crash may arrive late: only first arrivals count.
        """
        violations = []
        for run_id, ids in told.items():
            arrived = self.seen.get(run_id, [])
            known = set(arrived)
            if arrived != [one for one in ids if one in known]:
                violations.append(Violation("I6", f"facts of run {run_id} arrived out of order"))
            if complete and len(known) < len(ids):
                missing = len(ids) - len(known)
                violations.append(Violation("I6", f"{missing} facts of run {run_id} are missing"))
        return violations
