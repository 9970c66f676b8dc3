"""The database server of the simulation: who holds it, who waits, and what a commit sets off."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from tests.simulation.chance import Chance
from tests.simulation.journal import Journal
from tests.simulation.loop import SimLoop
from tests.simulation.nodes import Node
from tidemill.domain.errors import Unavailable
from tidemill.ports.store import Store, Transaction

LOCK_WAIT_SECONDS_MAX = 4.0
IDLE_SECONDS_MAX = 5.0

Answer = TypeVar("Answer")


def drive(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run to its end a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("the inline store has waited for something")


class Database:
    """The database server: who holds it, who waits, and what a commit sets off."""

    def __init__(self, inner: Store, loop: SimLoop, chance: Chance, journal: Journal) -> None:
        self.inner = inner
        self.loop = loop
        self.chance = chance
        self.journal = journal
        self.on_commit: Callable[[bool], None] = lambda _moved: None
        self.on_publish_check: Callable[[], None] = lambda: None
        self.down_until = 0.0
        self.commits = 0
        self._holder: Hold | None = None
        self._waiters: deque[tuple[asyncio.Future[Hold], Node]] = deque()

    async def take(self, node: Node) -> Hold:
        """Wait until nobody else is in a transaction, and hold the database."""
        if self._holder is None and not self._waiters:
            return self._grant(node)
        waiter: asyncio.Future[Hold] = self.loop.create_future()
        entry = (waiter, node)
        self._waiters.append(entry)
        timer = self.loop.call_outside(LOCK_WAIT_SECONDS_MAX, lambda: self._give_up(entry))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                waiter.result().release()
            elif entry in self._waiters:
                self._waiters.remove(entry)
            raise
        finally:
            timer.cancel()

    def free(self, hold: Hold) -> None:
        """Let the next one in."""
        if self._holder is not hold:
            return
        self._holder = None
        while self._waiters and self._holder is None:
            waiter, node = self._waiters.popleft()
            if node.alive and not waiter.done():
                waiter.set_result(self._grant(node))

    def _grant(self, node: Node) -> Hold:
        self._holder = Hold(self, node)
        return self._holder

    def _give_up(self, entry: tuple[asyncio.Future[Hold], Node]) -> None:
        if entry in self._waiters:
            self._waiters.remove(entry)
            if entry[1].alive and not entry[0].done():
                entry[0].set_exception(Unavailable("lock timeout"))


class Hold:
    """A node's hold on the database; gone when the node dies or sleeps for too long."""

    def __init__(self, database: Database, node: Node) -> None:
        self.database = database
        self.node = node
        self.gone = False
        self.moved = False  # whether runs or tasks may have changed
        self._inner: AbstractAsyncContextManager[Transaction] | None = None
        self._timer: asyncio.TimerHandle | None = None
        node.on_kill.append(self._abort)
        node.on_pause.append(self._start_timer)
        node.on_resume.append(self._stop_timer)
        if node.paused:
            self._start_timer()

    def begin(self) -> Transaction:
        """Open the real transaction."""
        self._inner = self.database.inner.transaction()
        return drive(self._inner.__aenter__())

    def commit(self) -> None:
        """Commit, let the checkers look, and let the next one in."""
        self.check()
        assert self._inner is not None
        inner, self._inner = self._inner, None
        try:
            drive(inner.__aexit__(None, None, None))
        finally:
            self.release()
        self.database.commits += 1
        self.database.on_commit(self.moved)

    def rollback(self) -> None:
        """Undo everything, and let the next one in."""
        inner, self._inner = self._inner, None
        if inner is not None:
            error = Unavailable("rolled back")
            with suppress(Unavailable):
                drive(inner.__aexit__(Unavailable, error, None))
        self.release()

    def check(self) -> None:
        """Refuse to go on once the server has ended the transaction."""
        if self.gone:
            raise Unavailable("the connection was closed by the server")

    def release(self) -> None:
        """Let the next one in."""
        if self.gone:
            return
        self.gone = True
        self._stop_timer()
        self.node.on_kill.remove(self._abort)
        self.node.on_pause.remove(self._start_timer)
        self.node.on_resume.remove(self._stop_timer)
        self.database.free(self)

    def _abort(self) -> None:
        self.database.journal.note(self.node.name, "transaction aborted by the server")
        self.rollback()

    def _start_timer(self) -> None:
        self._timer = self.database.loop.call_outside(IDLE_SECONDS_MAX, self._abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
