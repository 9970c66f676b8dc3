"""Waiting for runs to end, any number at once: told by facts, and made sure of in the store.

Nobody looks for one run alone. A fact that tells of an ending wakes whoever waits for it; besides,
one look at the store covers all who are due for one, soon after they came and then once a second.
So a wait works without a notifier too, and whichever process the run was started by.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tidemill.api.following import Following
from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.ports.clock import Clock
from tidemill.ports.store import Store

log = logging.getLogger(__name__)

WAITERS_MAX = 10_000
LOOK_RUNS_MAX = 2_000
FIRST_LOOK_SECONDS = 0.05
LOOK_SECONDS_MAX = 1.0
WAITERS_PER_SECOND = 20_000
"""The more wait, the longer the pause between two looks: it must not cost more with each."""

_ENDINGS = frozenset(
    {FactType.WORKFLOW_COMPLETED, FactType.WORKFLOW_FAILED, FactType.WORKFLOW_CANCELLED}
)


class _Waiter:
    """One who waits for the end of a run."""

    __slots__ = ("ended", "look_at", "looks", "run_id")

    def __init__(self, run_id: RunId, now: float) -> None:
        self.run_id = run_id
        self.ended = asyncio.Event()
        self.looks = 0
        self.look_at = now + FIRST_LOOK_SECONDS

    def looked(self, now: float) -> None:
        self.looks += 1
        self.look_at = now + min(FIRST_LOOK_SECONDS * 2.0**self.looks, LOOK_SECONDS_MAX)


class Endings:
    """Everybody in this process who waits for the end of a run."""

    def __init__(self, store: Store, clock: Clock, following: Following) -> None:
        self._store = store
        self._clock = clock
        self._following = following
        self._waiters: dict[RunId, set[_Waiter]] = {}
        self._count = 0
        self._somebody = asyncio.Event()
        following.listen(self._hear)

    async def wait(self, namespace: str, run_id: RunId, seconds: float) -> Run:
        """The run as it is when it has ended, or when the time is over; NotFound at once."""
        with self._waiting(run_id) as waiter, self._following.wanted():
            # Looked at after its name is down: an ending in between is told.
            run = await self._store.reader.run(namespace, run_id)
            if run.state in RUN_ENDED or seconds <= 0:
                return run
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter.ended.wait()
        return await self._store.reader.run(namespace, run_id)

    def dismiss(self) -> None:
        """Answer everybody who waits with the run as it is: the process is about to stop."""
        for one in self._all():
            one.ended.set()

    async def run(self) -> None:
        """Look at the store for those who are due, until cancelled."""
        while True:
            await self._somebody.wait()
            await self._clock.sleep(await self._look())

    async def step(self) -> int:
        """One look for all who are due; return how many runs were looked at."""
        now = self._clock.monotonic()
        due = [one for one in self._all() if one.look_at <= now and not one.ended.is_set()]
        wanted = sorted({one.run_id for one in due})[:LOOK_RUNS_MAX]
        if not wanted:
            return 0
        async with self._store.transaction() as tx:
            runs = await tx.runs.peek(wanted)
        for one in due:
            one.looked(now)
        for run in runs:
            if run.state in RUN_ENDED and self._tell(run.id):
                self._following.suspect()
        return len(wanted)

    async def _look(self) -> float:
        """One step, and how long to wait for the next one."""
        try:
            await self.step()
        except Unavailable as error:
            log.debug("runs that are waited for could not be looked at: %s", error)
        except Exception:
            log.exception("runs that are waited for could not be looked at")
        else:
            return max(FIRST_LOOK_SECONDS, self._count / WAITERS_PER_SECOND)
        return LOOK_SECONDS_MAX

    def _hear(self, facts: Sequence[Fact]) -> None:
        if not self._waiters:
            return
        for fact in facts:
            if fact.type in _ENDINGS:
                self._tell(fact.run_id)

    def _tell(self, run_id: RunId) -> bool:
        waiters = self._waiters.get(run_id, ())
        for one in waiters:
            one.ended.set()
        return bool(waiters)

    def _all(self) -> Iterator[_Waiter]:
        for waiters in self._waiters.values():
            yield from waiters

    @contextmanager
    def _waiting(self, run_id: RunId) -> Iterator[_Waiter]:
        if self._count >= WAITERS_MAX:
            raise Unavailable("too many requests wait for runs already: try again later")
        waiter = _Waiter(run_id, self._clock.monotonic())
        same = self._waiters.setdefault(run_id, set())
        same.add(waiter)
        self._count += 1
        self._somebody.set()
        try:
            yield waiter
        finally:
            same.discard(waiter)
            self._count -= 1
            if not same:
                self._waiters.pop(run_id, None)
            if not self._count:
                self._somebody.clear()


__all__ = ["Endings"]
