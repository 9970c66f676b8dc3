"""The relay: takes facts from the outbox to the bus, in order, at least once.

Outbox numbers are given at insert, not at commit, so whoever follows them loses rows that commit
late. The leader stamps the rows it can see with a dense `position`, in a transaction that locks
its leader row; every reader follows positions, with a cursor of its own. The cursor moves after
the publishing, so a crash in between publishes again what is known by its id.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import msgspec

from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import decode_facts
from tidemill.domain.identifiers import SECOND
from tidemill.ports.bus import Bus, Event
from tidemill.ports.clock import Clock
from tidemill.ports.store import OutboxRow, Store

log = logging.getLogger(__name__)

LEADER = "relay"
CURSOR = "bus"
PRUNE_ROWS_MAX = 1_000
PRUNE_ROUNDS_MAX = 100


class RelayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How often the relay looks, and how much it takes at a time."""

    poll_seconds: float = 0.5
    pause_seconds: float = 0.04  # at least, so that a busy mill is relayed in batches
    lead_seconds: float = 2.0
    rows_max: int = 500
    keep_seconds: float = 24 * 3_600.0
    prune_seconds: float = 60.0


class Relay:
    """Publishes the outbox. Any number may run; one of them leads."""

    def __init__(
        self, *, name: str, store: Store, bus: Bus, clock: Clock, config: RelayConfig
    ) -> None:
        self._name = name
        self._store = store
        self._bus = bus
        self._clock = clock
        self._config = config
        self._pruned_at = clock.monotonic()

    async def run(self) -> None:
        """Relay until cancelled."""
        async with asyncio.TaskGroup() as duties:
            woken = asyncio.Event()
            duties.create_task(self._follow_hints(woken))
            duties.create_task(self._relay(woken))

    async def resign(self) -> None:
        """Let another relay lead at once, instead of when this one's time is over."""
        async with self._store.transaction() as tx:
            await tx.outbox.lead(LEADER, self._name, await tx.now())

    async def step(self) -> int:
        """Publish one batch of rows; return how many."""
        rows = await self._stamped_rows()
        events = [event for row in rows for event in _events(row)]
        if rows:
            await self._bus.publish(events)
            async with self._store.transaction() as tx:
                await tx.outbox.move_cursor(CURSOR, rows[-1].position)
        await self._prune()
        return len(rows)

    async def _relay(self, woken: asyncio.Event) -> None:
        while True:
            try:
                moved = await self.step()
            except Unavailable as error:
                log.warning("the relay waits: %s", error)
                moved = 0
            except Exception:
                log.exception("the relay failed and tries again")
                moved = 0
            if moved < self._config.rows_max:
                await self._nap(woken)

    async def _nap(self, woken: asyncio.Event) -> None:
        await self._clock.sleep(self._config.pause_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.poll_seconds):
                await woken.wait()
        woken.clear()

    async def _follow_hints(self, woken: asyncio.Event) -> None:
        while True:
            try:
                await self._listen(woken)
            except Unavailable as error:
                log.warning("the relay hears no hints: %s", error)
            await self._clock.sleep(self._config.poll_seconds)

    async def _listen(self, woken: asyncio.Event) -> None:
        async with self._bus.hints() as hints:
            async for _ in hints:
                woken.set()

    async def _stamped_rows(self) -> list[OutboxRow]:
        async with self._store.transaction() as tx:
            until = await tx.now() + round(self._config.lead_seconds * SECOND)
            if not await tx.outbox.lead(LEADER, self._name, until):
                return []
            await tx.outbox.stamp(self._config.rows_max)
            after = await tx.outbox.cursor(CURSOR)
            return await tx.outbox.read(after, self._config.rows_max)

    async def _prune(self) -> None:
        if self._clock.monotonic() - self._pruned_at < self._config.prune_seconds:
            return
        self._pruned_at = self._clock.monotonic()
        for _ in range(PRUNE_ROUNDS_MAX):
            async with self._store.transaction() as tx:
                before = await tx.now() - round(self._config.keep_seconds * SECOND)
                gone = await tx.outbox.prune(before, PRUNE_ROWS_MAX)
            if gone < PRUNE_ROWS_MAX:
                break


def _events(row: OutboxRow) -> list[Event]:
    try:
        facts = decode_facts(row.facts)
    except msgspec.DecodeError:
        # Written by a later release, or damaged: those behind it must not wait for ever.
        log.exception("outbox row %d cannot be read and is passed over", row.number)
        return []
    return [
        Event(id=f"{row.number}.{index}", position=row.position, fact=fact)
        for index, fact in enumerate(facts)
    ]
