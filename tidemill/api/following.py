"""Follows the outbox, once for each api process: streams of events, waits and rates live on it.

Rows are read by position, so that nothing is missed whichever process has written it. The bus only
hurries: while somebody follows, its events wake the reader, or the relay does when it works in the
same process; without it, and for nobody, the reader looks once a second. Who falls behind the rows
kept in memory is cut off and resumes by its place, so a slow reader costs no memory. Positions are
given by the relay: without a notifier anywhere nothing is stamped, and streams stay silent. Health
says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import msgspec

from tidemill.api.recent_rows import Choice, Place, RecentRow, RecentRows, Told
from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import RunId
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.store import Store

log = logging.getLogger(__name__)

FACTS_AT_ONCE = 1_000
"""A millisecond or two of work."""


class FollowingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How often the outbox is looked at, and how much of it is kept in memory."""

    poll_seconds: float = 1.0
    pause_seconds: float = 0.02  # at least, so that a busy mill is followed in batches
    linger_seconds: float = 30.0  # how long to listen on when nobody follows any more
    stalled_seconds: float = 5.0  # so long may facts wait for a position
    rows_max: int = 500
    facts_max: int = 20_000
    followers_max: int = 1_000
    catching_up_max: int = 4


class NearRelay(Protocol):
    """A relay in the process of its reader: what it stamps, it tells without a bus."""

    @property
    def leads(self) -> bool:
        """Whether positions come from it."""

    def hurry(self) -> None:
        """Somebody has begun to wait for what happens."""


class Gap(msgspec.Struct, frozen=True):
    """Events after one position and before another are no longer kept."""

    after: int
    before: int


class TooSlow(Exception):
    """A follower has fallen behind what is kept in memory, and must resume by its place."""


class Following:
    """One reader of the outbox, and everybody who follows it."""

    def __init__(
        self, *, store: Store, bus: Bus, clock: Clock, config: FollowingConfig | None = None
    ) -> None:
        self.config = config or FollowingConfig()
        self.rows: RecentRows | None = None
        self.catching_up = asyncio.Semaphore(self.config.catching_up_max)
        self._store = store
        self._bus = bus
        self._clock = clock
        self._woken = asyncio.Event()
        self._wanted = asyncio.Event()
        self._started = asyncio.Event()
        self._down = ""
        self._unstamped_since: float | None = None
        self._waiters = 0
        self._followers: dict[RunId | None, set[Follower]] = {}
        self._listeners: list[Callable[[Sequence[Fact]], None]] = []
        self._relay: NearRelay | None = None

    def listen(self, listener: Callable[[Sequence[Fact]], None]) -> None:
        """Call it with the facts of every row from now on; it must be quick."""
        self._listeners.append(listener)

    def settle_beside(self, relay: NearRelay) -> None:
        """The relay works in this process and will wake the reader: no bus is needed then."""
        self._relay = relay

    @property
    def is_wanted(self) -> bool:
        """Whether anybody follows or waits."""
        return self._wanted.is_set()

    def wake(self) -> None:
        """There are new positions: read them at once if anybody wants them."""
        if self.is_wanted:
            self._woken.set()

    def health(self) -> list[str]:
        """Why events do not arrive as they should; nothing when they do."""
        reasons = [f"events cannot be read: {self._down}"] if self._down else []
        since = self._unstamped_since
        if since is not None and self._clock.monotonic() - since > self.config.stalled_seconds:
            reasons.append("no notifier relays facts: start `tidemill notifier` for live events")
        return reasons

    def suspect(self) -> None:
        """Something has happened that no row has told yet; the next row clears it up."""
        if self._unstamped_since is None:
            self._unstamped_since = self._clock.monotonic()

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as duties:
            duties.create_task(self._follow())
            duties.create_task(self._listen())

    async def step(self) -> int:
        """Read one batch of rows and tell those concerned; return how many."""
        if self.rows is None:
            head = await self._store.reader.events_head()
            self.rows = RecentRows(head, self.config.facts_max)
            self._started.set()
        found = await self._store.reader.events_after(self.rows.head, self.config.rows_max)
        facts = 0
        for row in found:
            if row.position > self.rows.head:
                self._take(recent := RecentRow(row))
                facts += recent.count
            if facts > FACTS_AT_ONCE:
                facts = 0
                await self._clock.sleep(0)  # others come first: nobody may wait for all of this
        return len(found)

    async def catch_up(self) -> None:
        """Read all that has a position by now, for whoever counts what has happened."""
        while await self.step() >= self.config.rows_max:
            pass

    async def check(self) -> None:
        """Unavailable when nobody else can follow now."""
        if sum(map(len, self._followers.values())) >= self.config.followers_max:
            raise Unavailable("too many streams of events are open: try again later")
        try:
            await self._begin()
        except TimeoutError:
            raise Unavailable("events cannot be read right now: try again later") from None

    @asynccontextmanager
    async def follow(self, choice: Choice, after: Place | None) -> AsyncIterator[Follower]:
        """Follow some events, those behind a place or those from now on."""
        await self.check()
        assert self.rows is not None
        follower = Follower(self, choice, self.rows, after)
        same = self._followers.setdefault(choice.run_id, set())
        same.add(follower)
        try:
            with self.wanted():
                yield follower
        finally:
            same.discard(follower)
            if not same:
                self._followers.pop(choice.run_id, None)

    async def _begin(self) -> None:
        async with asyncio.timeout(self.config.stalled_seconds):
            with self.wanted():
                await self._started.wait()

    async def kept_after(self, position: int) -> list[RecentRow]:
        """Rows from the store, for one who is behind those in memory."""
        async with self.catching_up:
            rows = await self._store.reader.events_after(position, self.config.rows_max)
        return [RecentRow(row) for row in rows]

    async def last_position(self) -> int:
        """The last position given, as the store knows it."""
        return await self._store.reader.events_head()

    def wanted(self) -> _Wanted:
        """While the block lasts somebody follows, so that the bus is listened to."""
        return _Wanted(self)

    def count_wanted(self, change: int) -> None:
        """Somebody more, or less, follows."""
        self._waiters += change
        if not self._waiters:
            self._wanted.clear()
        elif not self.is_wanted:
            self._wanted.set()
            self._woken.set()  # for what was stamped while nobody cared
            if self._relay is not None:
                self._relay.hurry()

    # Reading

    def _take(self, row: RecentRow) -> None:
        assert self.rows is not None
        self.rows.add(row)
        self._unstamped_since = None
        if not row.count:
            log.warning("outbox row %d cannot be read and is passed over", row.number)
        for listener in self._listeners:
            listener(row.facts)
        if not self._followers:
            row.fold()
            return
        for follower in self._concerned(row):
            follower.stir(row.position)

    def _concerned(self, row: RecentRow) -> Iterator[Follower]:
        yield from self._followers.get(None, ())
        if len(row.runs) < len(self._followers):
            for run_id in row.runs:
                yield from self._followers.get(run_id, ())
        else:
            for name, followers in self._followers.items():
                if name is not None and name in row.runs:
                    yield from followers

    async def _follow(self) -> None:
        while True:
            moved = await self._try_step()
            if moved is None:
                await self._clock.sleep(self.config.poll_seconds)
            elif moved < self.config.rows_max:
                await self._nap()

    async def _try_step(self) -> int | None:
        try:
            moved = await self.step()
        except Unavailable as error:
            self._down = str(error)
        except Exception:
            log.exception("the outbox could not be read, it is tried again")
        else:
            self._down = ""
            return moved
        return None

    async def _nap(self) -> None:
        await self._clock.sleep(self.config.pause_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.config.poll_seconds):
                await self._woken.wait()
        self._woken.clear()

    # Listening

    async def _listen(self) -> None:
        while True:
            await self._wanted.wait()
            if self._relay is not None and self._relay.leads:
                await self._clock.sleep(self.config.poll_seconds)
                continue
            with suppress(Unavailable):  # polling finds what no event tells
                await self._hear()
            await self._clock.sleep(self.config.poll_seconds)

    async def _hear(self) -> None:
        async with self._bus.subscribe() as events:
            hearing = asyncio.create_task(self._wake_with(events))
            self._woken.set()  # for what was published before anybody listened
            try:
                await self._linger(hearing)
            finally:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)

    async def _linger(self, hearing: asyncio.Task[None]) -> None:
        """Listen until the bus is lost, or nobody has followed for a while."""
        while not hearing.done():
            await asyncio.wait([hearing], timeout=self.config.linger_seconds)
            if not self._wanted.is_set():
                return

    async def _wake_with(self, events: AsyncIterator[object]) -> None:
        async for _ in events:
            self._woken.set()


class Follower:
    """One who follows: its place, and what it has not been given yet."""

    def __init__(
        self, following: Following, choice: Choice, rows: RecentRows, after: Place | None
    ) -> None:
        self.seen = Place(rows.head) if after is None else after
        self._following = following
        self._choice = choice
        self._rows = rows
        self._from_oldest = after is not None and after.position == 0
        self.live = after is None
        self._pending: int | None = None
        self._stirred = asyncio.Event()

    def stir(self, position: int) -> None:
        """A row that may concern it has arrived."""
        if self._pending is None:
            self._pending = position
            self._stirred.set()

    async def take(self, seconds: float) -> list[Told | Gap]:
        """What comes next; nothing when `seconds` have passed without it. Perhaps TooSlow."""
        if not self.live:
            return await self._catch_up()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        return list(self._read_recent())

    def _read_recent(self) -> Iterator[Told]:
        """From what is in memory, without a pause: whatever comes later stirs it again."""
        self._stirred.clear()
        pending, self._pending = self._pending, None
        if pending is not None:
            if pending <= self._rows.floor:
                raise TooSlow
            for row in self._rows.since(pending):
                yield from row.told(self._choice, self.seen)
        self.seen = max(self.seen, Place(self._rows.head))

    async def _catch_up(self) -> list[Told | Gap]:
        if self.seen.position > self._rows.head:
            return await self._step_back()
        # The row itself is read again when only a part of it was seen.
        before = self.seen.position - 1
        if before >= self._rows.floor or self.seen >= Place(self._rows.floor):
            self.live = True
            self._pending = self.seen.position
            return list(self._read_from_place())
        rows = await self._following.kept_after(max(before, 0))
        return list(self._read_stored(rows))

    def _read_from_place(self) -> Iterator[Told]:
        self._stirred.clear()
        self._pending = None
        for row in self._rows.since(self.seen.position):
            yield from row.told(self._choice, self.seen)
        self.seen = max(self.seen, Place(self._rows.head))

    def _read_stored(self, rows: Sequence[RecentRow]) -> Iterator[Told | Gap]:
        first = rows[0].position if rows else self._rows.floor + 1
        if first > self.seen.position + 1 and not self._from_oldest:
            yield Gap(self.seen.position, first)
        self._from_oldest = False
        for row in rows:
            yield from row.told(self._choice, self.seen)
        self.seen = max(self.seen, Place(rows[-1].position if rows else self._rows.floor))

    async def _step_back(self) -> list[Told | Gap]:
        """Another process has read further, or the place is from another database."""
        self.live = True
        head = await self._following.last_position()
        if self.seen.position <= head:
            return []
        gap = Gap(self.seen.position, self._rows.head + 1)
        self.seen = Place(self._rows.head)
        return [gap]


class _Wanted:
    """Counts itself among those who follow, for as long as its block lasts."""

    def __init__(self, following: Following) -> None:
        self._following = following

    def __enter__(self) -> None:
        self._following.count_wanted(1)

    def __exit__(self, *_: object) -> None:
        self._following.count_wanted(-1)


__all__ = ["Follower", "Following", "FollowingConfig", "Gap", "TooSlow"]
