"""The inbox: what has arrived and waits for the next turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

import msgspec

from tidemill.domain.events import Event
from tidemill.domain.identifiers import RunId, SessionId, Token
from tidemill.domain.task_run import Reason

PATIENCE_MISSES = 3
"""After so many turns in which another scheduler held the run, a turn waits for its lock."""


class TaskItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to one grant; `reporter` is the session to acknowledge it to."""

    token: Token
    event: Event
    reporter: SessionId | None = None
    misses: int = 0

    @property
    def run_id(self) -> RunId:
        """The run whose lock the item needs."""
        return self.token.run_id


class RunItem(msgspec.Struct, frozen=True, kw_only=True):
    """A run to go on with, or to stop."""

    run_id: RunId
    stop: Reason | None = None
    misses: int = 0


Item = TaskItem | RunItem


class Inbox:
    """A bounded queue of items. Whoever puts more waits: a slow store slows its workers down."""

    def __init__(self, items_max: int) -> None:
        self._items_max = items_max
        self._items: deque[Item] = deque()
        self._patient: deque[Item] = deque()
        self._woken = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._items) + len(self._patient)

    async def put(self, items: Iterable[Item]) -> None:
        """Add items, waiting for room first."""
        while len(self) >= self._items_max:
            self._room.clear()
            await self._room.wait()
        self._items.extend(items)
        self._woken.set()

    def put_own(self, items: Iterable[Item]) -> None:
        """Add items that a turn itself has made: whoever empties the inbox cannot wait for room."""
        self._items.extend(items)
        self._woken.set()

    def put_back(self, items: Iterable[Item]) -> None:
        """Return items whose run another scheduler held; there is always room for them."""
        for item in items:
            again = msgspec.structs.replace(item, misses=item.misses + 1)
            (self._patient if again.misses >= PATIENCE_MISSES else self._items).append(again)
        self._woken.set()

    def go_on(self, run_ids: Iterable[RunId]) -> None:
        """Note runs that have more to do; they queue behind everyone else."""
        self._items.extend(RunItem(run_id=run_id) for run_id in run_ids)
        self._woken.set()

    def take(self, items_max: int) -> tuple[list[Item], bool]:
        """The next batch, and whether its locks are worth waiting for."""
        source = self._patient or self._items
        patient = source is self._patient
        batch = [source.popleft() for _ in range(min(items_max, len(source)))]
        if len(self) < self._items_max:
            self._room.set()
        return batch, patient

    def wake(self) -> None:
        """End the wait: there is something to do besides items."""
        self._woken.set()

    async def wait(self) -> None:
        """Wait until something has arrived since the last wait, or is here."""
        if not len(self):
            await self._woken.wait()
        self._woken.clear()
