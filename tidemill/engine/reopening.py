"""Reopening runs: how replays and retries are carried out."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.domain.errors import MalformedRun, NotFound, Unavailable
from tidemill.domain.identifiers import Lane, RunId
from tidemill.domain.ledger import Ledger
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.domain.workflow import TASKS_MAX
from tidemill.engine.book import Book
from tidemill.engine.plans import Plans
from tidemill.engine.retrying import with_plans
from tidemill.ports.bus import Bus, Hint
from tidemill.ports.store import Store

ROWS_MAX = 2 * TASKS_MAX
PAGE_ROWS = 5_000
LANES_MAX = 100
"""Lanes in one hint: schedulers find the others by themselves."""

Act = Callable[[Ledger], None]


async def reopen(store: Store, bus: Bus, namespace: str, run_id: RunId, act: Act) -> Run:
    """Let `act` reopen a run, every row of which is at hand, and hurry the schedulers.

    The whole run, at most TASKS_MAX rows, is written in one transaction: its tasks depend on each
    other. Of a run that has ended it holds nobody up, since nothing else moves there.
    """
    reopening = _Reopening(store, namespace, run_id, act)
    ledger = await with_plans(store, reopening.plans, reopening.once)
    ready = {Lane(task.namespace, task.route, task.priority) for task in ledger.ready_tasks()}
    await bus.send_hint(Hint(runs=(run_id,), lanes=tuple(sorted(ready)[:LANES_MAX])))
    return ledger.run


class _Reopening:
    """One wish, however often it has to be tried."""

    def __init__(self, store: Store, namespace: str, run_id: RunId, act: Act) -> None:
        self.plans = Plans()
        self._store = store
        self._namespace = namespace
        self._run_id = run_id
        self._act = act
        self._generation: int | None = None

    async def once(self) -> Ledger:
        async with self._store.transaction() as tx:
            book = Book(tx, self.plans, await tx.now(), lambda: 0.5, ROWS_MAX)
            book.open_locked(await tx.runs.lock([self._run_id], wait=True), ())
            ledger = self._known(book.ledgers.get(self._run_id))
            if self._generation is not None and ledger.run.generation > self._generation:
                return ledger  # an earlier try was committed, its reply lost
            self._generation = ledger.run.generation
            if ledger.run.state not in RUN_ENDED:
                states = list(TaskState)
                ledger.supply(await tx.tasks.lock_states(self._run_id, states, ROWS_MAX))
                self._act(ledger)
                await book.follow()
                await book.write()
                return ledger
        return await self._once_ended(ledger)

    async def _once_ended(self, ledger: Ledger) -> Ledger:
        """Work it out beside any transaction: it takes seconds for the largest runs."""
        before = ledger.run
        ledger.supply(await self._read_tasks())
        self._act(ledger)
        ledger.tell()
        ledger.settle()
        async with self._store.transaction() as tx:
            if await tx.runs.lock([self._run_id], wait=True) != [before]:
                raise Unavailable("somebody else changed the run meanwhile")
            book = Book(tx, self.plans, ledger.now, lambda: 0.5, ROWS_MAX)
            book.take_over(ledger)
            await book.write()
        return ledger

    async def _read_tasks(self) -> list[TaskRun]:
        rows: list[TaskRun] = []
        while len(rows) <= ROWS_MAX:
            after = rows[-1].position if rows else -1
            page = await self._store.reader.tasks(self._namespace, self._run_id, after, PAGE_ROWS)
            rows += page
            if len(page) < PAGE_ROWS:
                return rows
        raise MalformedRun(self._run_id, "it has more tasks than any definition")

    def _known(self, ledger: Ledger | None) -> Ledger:
        if ledger is None or ledger.run.namespace != self._namespace:
            raise NotFound(f"no run {self._run_id}, or it is in quarantine")
        return ledger
