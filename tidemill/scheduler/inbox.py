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
    namespace: str | None = None  # of the reporter
    holder: SessionId | None = None  # who must hold the grant for the item to count
    number: int = 0  # the reporter's own, for the answer
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
    """A bounded queue of items. Whoever puts more waits: a slow store slows its workers down.

    Items whose run somebody else holds for long are kept apart, as patient ones: a turn of their
    own waits for the lock, and no other run waits with it. Items of a run that a turn of ours is
    busy with wait for its end: another turn could not lock the run.
    """

    def __init__(self, items_max: int) -> None:
        self._items_max = items_max
        self._items: deque[Item] = deque()
        self._patient: deque[Item] = deque()
        self._busy: set[RunId] = set()  # runs whose items are out
        self._behind: dict[RunId, list[Item]] = {}  # and what has arrived for them since
        self._runs: set[RunId] = set()  # with a plain RunItem in the queue: one is enough
        self._woken = asyncio.Event()
        self._patience = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._items) + len(self._patient) + sum(map(len, self._behind.values()))

    async def put(self, items: Iterable[Item]) -> None:
        """Add items, waiting for room first."""
        while len(self) >= self._items_max:
            self._room.clear()
            await self._room.wait()
        self.put_own(items)

    def offer(self, items: Iterable[Item]) -> None:
        """Add items that a later look would find again, unless there is no room."""
        if len(self) < self._items_max:
            self.put_own(items)

    def put_own(self, items: Iterable[Item]) -> None:
        """Add items that a turn itself has made: whoever empties the inbox cannot wait for room."""
        self._items.extend(items)
        self._woken.set()

    def put_back(self, items: Iterable[Item]) -> None:
        """Return items whose run another scheduler held; there is always room for them."""
        missed = [msgspec.structs.replace(item, misses=item.misses + 1) for item in items]
        self.put_own(item for item in missed if item.misses < PATIENCE_MISSES)
        self.be_patient(item for item in missed if item.misses >= PATIENCE_MISSES)

    def be_patient(self, items: Iterable[Item]) -> None:
        """Keep items for turns that wait for their lock."""
        self._patient.extend(items)
        if self._patient:
            self._patience.set()

    def go_on(self, run_ids: Iterable[RunId]) -> None:
        """Note runs that have more to do; they queue behind everyone else."""
        fresh = [run_id for run_id in dict.fromkeys(run_ids) if run_id not in self._runs]
        self._runs.update(fresh)
        self.put_own(RunItem(run_id=run_id) for run_id in fresh)

    def hear(self, run_ids: Iterable[RunId]) -> None:
        """Note runs that somebody hinted at, unless there is no room: a sweep finds them."""
        if len(self) < self._items_max:
            self.go_on(run_ids)

    def take(self, items_max: int) -> list[Item]:
        """The next batch; its runs are ours alone until it is `done`."""
        batch: list[Item] = []
        runs: set[RunId] = set()
        while self._items and len(batch) < items_max:
            item = self._items.popleft()
            run_id = item.run_id
            if run_id in self._busy:
                self._behind.setdefault(run_id, []).append(item)
            else:
                batch.append(item)
                runs.add(run_id)
        self._busy |= runs
        self._runs.difference_update(item.run_id for item in batch if isinstance(item, RunItem))
        self._make_room()
        return batch

    def done(self, batch: Iterable[Item]) -> None:
        """A batch has been dealt with, one way or the other."""
        for run_id in {item.run_id for item in batch}:
            self._busy.discard(run_id)
            self._items.extendleft(reversed(self._behind.pop(run_id, ())))
        if self._items:
            self._woken.set()

    async def take_patient(self) -> list[Item]:
        """The items of one run that is worth waiting for."""
        while not self._patient:
            self._patience.clear()
            await self._patience.wait()
        run_id = self._patient[0].run_id
        batch = [item for item in self._patient if item.run_id == run_id]
        self._patient = deque(item for item in self._patient if item.run_id != run_id)
        self._make_room()
        return batch

    def wake(self) -> None:
        """End the wait: there is something to do besides items."""
        self._woken.set()

    async def wait(self) -> None:
        """Wait until something has arrived since the last wait, or is here."""
        if not self._items:
            await self._woken.wait()
        self._woken.clear()

    def _make_room(self) -> None:
        if len(self) < self._items_max:
            self._room.set()
