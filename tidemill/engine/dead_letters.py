"""Dead letters: FAILED tasks, how to try them again, and how to let go of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from tidemill.domain import reopening
from tidemill.domain.errors import Conflict, NotFound, TidemillError, Unavailable
from tidemill.domain.identifiers import TaskKey
from tidemill.domain.ledger import Ledger
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskState
from tidemill.engine.reopening import reopen
from tidemill.engine.retrying import retrying
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.queries import DeadQuery
from tidemill.ports.store import Store

RATE_MAX = 1_000.0
REPLAYS_MAX = 10_000
PAGE_LETTERS = 100


async def replay(store: Store, bus: Bus, namespace: str, key: TaskKey) -> Run:
    """Try one dead letter again: its run reopens, what waited for it waits again."""

    def act(ledger: Ledger) -> None:
        if ledger.task(key.position) is None:
            raise NotFound(f"run {key.run_id} has no task at position {key.position}")
        reopening.replay(ledger, key.position)

    return await reopen(store, bus, namespace, key.run_id, act)


async def discard(store: Store, namespace: str, key: TaskKey) -> None:
    """Take a task out of the dead letters. It stays FAILED, and can still be replayed by its key.

    Repeating it is harmless; Conflict with the code NOT_FAILED when the task has not failed.
    """

    async def once() -> None:
        async with store.transaction() as tx:
            runs = await tx.runs.lock([key.run_id], wait=True)
            if not runs or runs[0].namespace != namespace:
                raise NotFound(f"no run {key.run_id}, or it is in quarantine")
            tasks = await tx.tasks.lock([key])
            if not tasks:
                raise NotFound(f"run {key.run_id} has no task at position {key.position}")
            if tasks[0].state is not TaskState.FAILED:
                text = f"only a FAILED task can be discarded; this one is {tasks[0].state}"
                raise Conflict(text, code="NOT_FAILED")
            await tx.tasks.discard(key)

    await retrying(once)


class Replayed(NamedTuple):
    """What became of one dead letter of many."""

    key: TaskKey
    error: TidemillError | None = None


class BulkReplay(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters to try again, at most so many, and how many a second."""

    query: DeadQuery  # its page and limit do not count
    rate: float = 10.0
    limit: int = 1_000


async def replay_many(
    store: Store, bus: Bus, clock: Clock, wish: BulkReplay
) -> AsyncIterator[Replayed]:
    """Try dead letters again, newest run first, no faster than the rate; each is told when done.

    Those that fail anew meanwhile are not tried twice. Whoever stops listening stops it.
    """
    pause = 1 / min(max(wish.rate, 0.001), RATE_MAX)
    left = min(wish.limit, REPLAYS_MAX)
    due = clock.monotonic()
    page = msgspec.structs.replace(wish.query, after=None, limit=min(PAGE_LETTERS, left))
    while left and (letters := await store.reader.dead_letters(page)):
        for letter in letters[:left]:
            if (wait := due - clock.monotonic()) > 0:
                await clock.sleep(wait)
            due = max(due, clock.monotonic() - 1) + pause
            yield await _replayed(store, bus, wish.query.namespace, letter.key)
            left -= 1
        page = msgspec.structs.replace(page, after=letters[-1].key)


async def _replayed(store: Store, bus: Bus, namespace: str, key: TaskKey) -> Replayed:
    try:
        await replay(store, bus, namespace, key)
    except Unavailable:
        raise
    except TidemillError as error:
        return Replayed(key, error)  # replayed or stopped meanwhile by somebody else
    return Replayed(key)
