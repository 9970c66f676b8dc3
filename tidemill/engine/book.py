"""The book: the ledgers of one transaction, opened, followed and written together.

Everything that changes tasks goes through here, so that state, history and facts are always
written as one. Each step is one statement for all runs of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from tidemill.domain.errors import MalformedRun
from tidemill.domain.facts import Fact, encode_facts
from tidemill.domain.identifiers import Moment, RunId, TaskKey
from tidemill.domain.ledger import STOPPABLE, Journal, Ledger
from tidemill.domain.run import Run, RunState
from tidemill.domain.task_run import TaskRun
from tidemill.engine.plans import Plans
from tidemill.ports.store import Changes, TaskResult, Transaction

LOADS_MAX = 100
"""How often one transaction may go back for more rows; each time it gets a full bound of them."""


STATEMENT_ROWS_MAX = 5_000
"""Rows that one statement writes: more than a turn has, less than a large replay."""


class Book:
    """The ledgers of one transaction."""

    def __init__(
        self, tx: Transaction, plans: Plans, now: Moment, chance: Callable[[], float], rows_max: int
    ) -> None:
        self.now = now
        self.ledgers: dict[RunId, Ledger] = {}
        self.locked: set[RunId] = set()
        self.changed: list[TaskRun] = []  # the tasks that were written
        self._journal = Journal()
        self._tx = tx
        self._plans = plans
        self._chance = chance
        self._rows_max = rows_max
        self._rows_left = rows_max
        self._taken_up: set[RunId] = set()

    def open_locked(self, runs: Sequence[Run], tasks: Sequence[TaskRun]) -> None:
        """Open ledgers of runs that this transaction has locked, with rows of theirs."""
        self._open(runs)
        self.locked.update(run.id for run in runs)
        self.supply(tasks)

    def open_seen(self, runs: Sequence[Run]) -> None:
        """Open ledgers of runs that are not locked: enough to grant their READY tasks."""
        self._open([run for run in runs if run.id not in self.ledgers])

    def take_over(self, ledger: Ledger) -> None:
        """Write what a ledger says that was worked out before, beside any transaction."""
        self.ledgers[ledger.run.id] = ledger
        self._journal = ledger.journal

    async def load(self, keys: Iterable[TaskKey]) -> int:
        """Lock rows of open ledgers; return how many there are."""
        wanted = sorted(key for key in set(keys) if key.run_id in self.ledgers)
        if not wanted:
            return 0
        rows = await self._tx.tasks.lock(wanted)
        self.supply(rows)
        return len(rows)

    async def take_up(self, run_ids: Iterable[RunId]) -> None:
        """Load what earlier transactions left to be told."""
        for run_id in run_ids:
            ledger = self.ledgers.get(run_id)
            if ledger is not None and ledger.run.state in {RunState.RUNNING, RunState.PAUSED}:
                self._taken_up.add(run_id)
                rows = await self._tx.tasks.lock_untold(run_id, self._rows_max)
                ledger.take_up(rows, more=len(rows) == self._rows_max)

    async def follow(self) -> None:
        """Work out all that follows from what happened, within the bound of rows."""
        for ledger in self.ledgers.values():
            if ledger.run.state is RunState.PENDING:
                self._spend(ledger, ledger.unfold)
        telling = [ledger for ledger in self.ledgers.values() if ledger.has_to_tell]
        for _ in range(LOADS_MAX):
            for ledger in telling:
                self._spend(ledger, ledger.tell)
            telling = [ledger for ledger in telling if ledger.has_to_tell]
            if not await self.load(self._wanted(telling)):
                break
        for run_id, ledger in self.ledgers.items():
            if ledger.must_stop_tasks or (ledger.is_stopping and run_id in self._taken_up):
                await self._stop(run_id, ledger)
            elif ledger.run.swept is not None and run_id in self._taken_up:
                await self._sweep(run_id, ledger)
            ledger.settle()

    async def write(self) -> None:
        """Write everything that changed, facts last."""
        attempts, facts = self._journal.attempts, self._journal.facts
        tasks = self.changed
        runs = list[Run]()
        for ledger in self.ledgers.values():
            tasks += ledger.changed_tasks()
            run = ledger.changed_run()
            if run is not None:
                runs.append(run)
        await self._tx.write(
            Changes(
                new_tasks=self._journal.new_tasks,
                tasks=tasks[:STATEMENT_ROWS_MAX],
                runs=runs,
                results=[TaskResult(*result) for result in self._journal.results],
                attempts=attempts[:STATEMENT_ROWS_MAX],
                facts=_encoded(facts[:STATEMENT_ROWS_MAX]),
            )
        )
        most = max(len(tasks), len(attempts), len(facts))
        for first in range(STATEMENT_ROWS_MAX, most, STATEMENT_ROWS_MAX):
            part = slice(first, first + STATEMENT_ROWS_MAX)
            await self._tx.write(
                Changes(tasks=tasks[part], attempts=attempts[part], facts=_encoded(facts[part]))
            )

    def _open(self, runs: Sequence[Run]) -> None:
        plans, broken = self._plans.of(runs)
        for run in runs:
            if run.version_id in broken:
                raise MalformedRun(run.id, broken[run.version_id])
            plan = plans[run.version_id]
            self.ledgers[run.id] = Ledger(
                run, plan, self.now, self._chance, self._rows_max, self._journal
            )

    def supply(self, tasks: Iterable[TaskRun]) -> None:
        """Hand locked rows to their ledgers."""
        for task in tasks:
            ledger = self.ledgers[task.run_id]
            if not 0 <= task.node < len(ledger.plan.nodes):
                raise MalformedRun(task.run_id, "a task stands for no node of the definition")
            ledger.supply((task,))

    def _spend(self, ledger: Ledger, step: Callable[[], None]) -> None:
        """Take a step of one ledger out of the bound that all ledgers share."""
        ledger.rows_left = before = min(ledger.rows_left, self._rows_left)
        step()
        self._rows_left -= before - ledger.rows_left

    def _wanted(self, telling: Sequence[Ledger]) -> list[TaskKey]:
        keys = (
            TaskKey(ledger.run.id, position) for ledger in telling for position in ledger.wanted()
        )
        return list(islice(keys, max(self._rows_left, 0)))

    async def _stop(self, run_id: RunId, ledger: Ledger) -> None:
        limit = max(self._rows_left, 1)
        rows = await self._tx.tasks.lock_states(run_id, STOPPABLE, limit)
        self._rows_left -= len(rows)
        ledger.stop_tasks(rows, more=len(rows) == limit)
        ledger.tell()

    async def _sweep(self, run_id: RunId, ledger: Ledger) -> None:
        limit = max(self._rows_left, 1)
        rows = await self._tx.tasks.lock_ready(
            run_id, paused=not ledger.is_paused, start=ledger.run.swept or 0, limit=limit
        )
        self._rows_left -= len(rows)
        ledger.sweep(rows, more=len(rows) == limit)


def _encoded(facts: Sequence[Fact]) -> list[bytes]:
    return [encode_facts(facts)] if facts else []
