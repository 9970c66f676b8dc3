"""The relay: takes facts from the outbox to the bus, in order, at least once.

Outbox numbers are given at insert, not at commit, so whoever follows them loses rows that commit
late. The leader stamps the rows it can see with a dense `position`, in a transaction that locks
its leader row; every reader follows positions, with a cursor of its own. The cursor moves after
the publishing, so a crash in between publishes again what is known by its id.

A step costs a commit, so it is taken for many turns at once: soon after the first of them while
somebody listens, and a few times a second while nobody does. What nobody hears is not even read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import decode_facts
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.notifier.outage import Outage
from tidemill.ports.broker import Message
from tidemill.ports.bus import Bus, Event
from tidemill.ports.clock import Clock
from tidemill.ports.store import OutboxRow, OutboxTable, Store
from tidemill.protocol.unreadable import dead_letter

log = logging.getLogger(__name__)

LEADER = "relay"
CURSOR = "bus"
STAMPED = "$stamped"  # where the store keeps how far it has given out positions
PRUNE_ROWS_MAX = 1_000
PRUNE_ROUNDS_MAX = 100
STAMP_ROUNDS_MAX = 4


class RelayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How often the relay looks, and how much it takes at a time."""

    poll_seconds: float = 0.5
    pause_seconds: float = 0.04  # at least, so that a busy mill is relayed in batches
    calm_seconds: float = 0.25  # at least, while nobody listens
    lead_seconds: float = 1.4  # with one poll, less than the two seconds of a takeover
    retry_seconds_max: float = 2.0
    publish_seconds: float = 30.0
    rows_max: int = 500
    rows_behind_max: int = 10_000  # more than that is said in health
    keep_seconds: float = 24 * 3_600.0
    prune_seconds: float = 60.0


class RelayState(msgspec.Struct, frozen=True, kw_only=True):
    """How a relay is doing. Only the one that leads knows how far behind the bus is."""

    leading: bool
    rows_behind: int
    bus_down_since: Moment | None
    store_down_since: Moment | None


class Neighbour(Protocol):
    """A reader of the outbox in the relay's own process: it needs no bus to be woken."""

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for what it reads."""

    def wake(self) -> None:
        """There are new positions."""


class Relay:
    """Publishes the outbox. Any number may run; one of them leads.

    `is_heard` says whether what is published can reach anybody; by default that is never ruled out.
    """

    def __init__(
        self,
        *,
        name: str,
        store: Store,
        bus: Bus,
        clock: Clock,
        config: RelayConfig,
        is_heard: Callable[[], bool] = lambda: True,
    ) -> None:
        self._name = name
        self._store = store
        self._bus = bus
        self._clock = clock
        self._config = config
        self._is_heard = is_heard
        self._neighbours: list[Neighbour] = []
        self._hurried = asyncio.Event()
        self._caught_up = False  # the cursor has come as far as positions were given
        self._began_at = clock.monotonic()  # the last step
        self._pruned_at = clock.monotonic()
        self._leading = False
        self._rows_behind = 0
        self._bus_outage = Outage("the bus", clock)
        self._store_outage = Outage("the store", clock)

    @property
    def state(self) -> RelayState:
        """How it is doing, as of the last step."""
        return RelayState(
            leading=self._leading,
            rows_behind=self.lag(),
            bus_down_since=self._bus_outage.since,
            store_down_since=self._store_outage.since,
        )

    def lag(self) -> int:
        """Rows that wait to be published, as of the last step; 0 when another relay leads."""
        return self._rows_behind if self._leading else 0

    @property
    def leads(self) -> bool:
        """Whether it was the leader in its last step."""
        return self._leading

    def settle_beside(self, neighbour: Neighbour) -> None:
        """Wake a reader of the same process from now on."""
        self._neighbours.append(neighbour)

    def hurry(self) -> None:
        """Somebody has begun to wait for what happens."""
        self._hurried.set()

    def health(self) -> list[str]:
        """Why facts do not leave as they should; nothing when they do. Work goes on regardless."""
        reasons = self._store_outage.tell() + self._bus_outage.tell()
        if self.lag() > self._config.rows_behind_max:
            reasons.append(f"the relay is {self.lag()} outbox rows behind")
        return reasons

    async def run(self) -> None:
        """Relay until cancelled."""
        async with asyncio.TaskGroup() as duties:
            woken = asyncio.Event()
            duties.create_task(self._follow_hints(woken))
            duties.create_task(self._relay(woken))

    async def resign(self) -> None:
        """Let another relay lead at once, instead of when this one's time is over."""
        async with self._store.transaction() as tx:
            await tx.outbox.lead(LEADER, self._name, 0)

    async def step(self) -> int:
        """Publish one batch of rows; return how many."""
        began_before, self._began_at = self._began_at, self._clock.monotonic()
        caught_up, self._caught_up = self._caught_up, False
        stamped, rows = await self._take_rows(caught_up, began_before)
        self._store_outage.worked()
        if stamped:
            for neighbour in self._neighbours:
                neighbour.wake()
        if rows:
            await self._carry(rows)
            async with self._store.transaction() as tx:
                await tx.outbox.move_cursor(CURSOR, rows[-1].position)
            self._rows_behind = max(0, self._rows_behind - len(rows))
        self._caught_up = self._leading and self._rows_behind == 0
        await self._prune()
        return max(stamped, len(rows))

    # Waiting

    async def _relay(self, woken: asyncio.Event) -> None:
        while True:
            moved = await self._try_step()
            if moved is None:
                await self._back_off()
            elif moved < self._config.rows_max:
                await self._nap(woken)

    async def _try_step(self) -> int | None:
        """One step; None when it failed."""
        bus_tries = self._bus_outage.tries
        try:
            return await self.step()
        except Unavailable as error:
            if self._bus_outage.tries == bus_tries:  # then it was the store
                self._store_outage.failed(str(error))
        except Exception:
            log.exception("the relay failed and tries again")
        return None

    async def _back_off(self) -> None:
        tries = max(self._bus_outage.tries, self._store_outage.tries, 1)
        seconds = self._config.poll_seconds * 2.0 ** min(tries - 1, 10)
        await self._clock.sleep(min(seconds, self._config.retry_seconds_max))

    async def _nap(self, woken: asyncio.Event) -> None:
        await self._clock.sleep(self._config.pause_seconds)
        if not self._is_followed():
            self._hurried.clear()
            await _at_most(self._config.calm_seconds, self._hurried)
        await _at_most(self._config.poll_seconds, woken)
        woken.clear()

    def _is_followed(self) -> bool:
        return self._is_heard() or any(one.is_wanted for one in self._neighbours)

    async def _follow_hints(self, woken: asyncio.Event) -> None:
        while True:
            with suppress(Unavailable):  # polling finds what no hint tells
                await self._listen(woken)
            await self._clock.sleep(self._config.poll_seconds)

    async def _listen(self, woken: asyncio.Event) -> None:
        async with self._bus.hints() as hints:
            async for _ in hints:
                woken.set()

    # One step

    async def _take_rows(self, caught_up: bool, began_before: float) -> tuple[int, list[OutboxRow]]:
        """How many rows have a position now that had none, and those to be published."""
        async with self._store.transaction() as tx:
            lead_micros = round(self._config.lead_seconds * SECOND)
            self._leading = await tx.outbox.lead(LEADER, self._name, lead_micros)
            if not self._leading:
                return 0, []
            # If not, another one may have led in between, and left rows that it had stamped.
            led_on = self._clock.monotonic() - began_before < self._config.lead_seconds
            stamped = await self._stamp(tx.outbox)
            if not stamped and caught_up and led_on:
                return 0, []
            # Asked after the stamping: who listens by then hears all that is committed later.
            if self._is_heard():
                return stamped, await self._read(tx.outbox)
            await tx.outbox.pass_over(CURSOR)
            self._rows_behind = 0
            return stamped, []

    async def _stamp(self, outbox: OutboxTable) -> int:
        stamped = 0
        for _ in range(STAMP_ROUNDS_MAX):
            some = await outbox.stamp(self._config.rows_max)
            stamped += some
            if some < self._config.rows_max:
                break
        return stamped

    async def _read(self, outbox: OutboxTable) -> list[OutboxRow]:
        after = await outbox.cursor(CURSOR)
        rows = await outbox.read(after, self._config.rows_max)
        self._rows_behind = await outbox.cursor(STAMPED) - after if rows else 0
        return rows

    async def _carry(self, rows: Sequence[OutboxRow]) -> None:
        """Bring rows to the bus: facts as events, what cannot be read to the dead letters."""
        events: list[Event] = []
        aside: list[Message] = []
        for row in rows:
            try:
                events += _events(row)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                # Written by a later release, or damaged: those behind it must not wait for ever.
                aside.append(_unreadable(row.facts, f"outbox row {row.number}", str(error)))
        try:
            async with asyncio.timeout(self._config.publish_seconds):
                await self._publish(events)
                await self._set_aside(aside)
        except TimeoutError as error:
            self._bus_outage.failed(f"no answer within {self._config.publish_seconds:g} s")
            raise Unavailable(self._bus_outage.reason) from error
        except Unavailable as error:
            self._bus_outage.failed(str(error))
            raise
        self._bus_outage.worked()

    async def _publish(self, events: Sequence[Event]) -> None:
        """Publish a batch; one that the bus refuses is halved until the culprit stands alone."""
        if not events:
            return
        try:
            await self._bus.publish(events)
        except (Unavailable, TimeoutError):
            raise
        except Exception as error:
            if len(events) == 1:
                log.exception("the bus refuses event %s", events[0].id)
                data = msgspec.json.encode(events[0])
                await self._set_aside([_unreadable(data, f"event {events[0].id}", str(error))])
                return
            half = len(events) // 2
            await self._publish(events[:half])
            await self._publish(events[half:])

    async def _set_aside(self, messages: Sequence[Message]) -> None:
        for message in messages:
            log.warning("%s cannot be carried: %s", *message.headers.values())
            try:
                await self._bus.set_aside(message)
            except (Unavailable, TimeoutError):
                raise
            except Exception:
                log.exception("it cannot be kept among the dead letters either")

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


async def _at_most(seconds: float, event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _events(row: OutboxRow) -> list[Event]:
    return [
        Event(id=f"{row.number}.{index}", position=row.position, fact=fact)
        for index, fact in enumerate(decode_facts(row.facts))
    ]


def _unreadable(data: bytes, source: str, reason: str) -> Message:
    return dead_letter(Message(value=data), source, reason)
