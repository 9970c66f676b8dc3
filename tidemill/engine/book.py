"""The book: the ledgers of one transaction, opened, followed and written together.

Everything that changes tasks goes through here, so that state, history and facts are always
written as one. Each step is one statement for all runs of the batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from tidemill.domain.errors import MalformedRun
from tidemill.domain.facts import Fact, encode_facts
from tidemill.domain.identifiers import Moment, RunId, TaskKey
from tidemill.domain.ledger import STOPPABLE, Ledger
from tidemill.domain.run import Run, RunState
from tidemill.domain.task_run import TaskRun
from tidemill.engine.plans import Plans
from tidemill.ports.store import TaskResult, Transaction

LOADS_MAX = 100
"""How often one transaction may go back for more rows; each time it gets a full bound of them."""


STATEMENT_ROWS_MAX = 5_000
"""Rows that one statement writes: more than a turn has, less than a large replay."""

T = TypeVar("T")


class Book:
    """The ledgers of one transaction."""

    def __init__(
        self, tx: Transaction, plans: Plans, now: Moment, chance: Callable[[], float], rows_max: int
    ) -> None:
        self.now = now
        self.ledgers: dict[RunId, Ledger] = {}
        self.locked: set[RunId] = set()
        self._tx = tx
        self._plans = plans
        self._chance = chance
        self._rows_max = rows_max
        self._rows_left = rows_max
        self._taken_up: set[RunId] = set()

    async def open_runs(self, run_ids: Sequence[RunId], *, wait: bool) -> None:
        """Lock runs and open their ledgers; a run that is missing afterwards could not be had."""
        runs = await self._tx.runs.lock(run_ids, wait=wait)
        self._open(runs)
        self.locked.update(run.id for run in runs)

    async def peek_runs(self, run_ids: Sequence[RunId]) -> None:
        """Open ledgers of runs without locking them: enough to grant their READY tasks."""
        unopened = [run_id for run_id in run_ids if run_id not in self.ledgers]
        if unopened:
            self._open(await self._tx.runs.peek(unopened))

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
        for _ in range(LOADS_MAX):
            for ledger in self.ledgers.values():
                self._spend(ledger, ledger.tell)
            if not await self.load(self._wanted()):
                break
        for run_id, ledger in self.ledgers.items():
            if ledger.must_stop_tasks or (ledger.is_stopping and run_id in self._taken_up):
                await self._stop(run_id, ledger)
            elif ledger.run.swept is not None and run_id in self._taken_up:
                await self._sweep(run_id, ledger)
            ledger.settle()

    async def write(self) -> None:
        """Write everything that changed, facts last."""
        ledgers = list(self.ledgers.values())
        tx = self._tx
        await tx.tasks.add([task for ledger in ledgers for task in ledger.new_tasks])
        for rows in _in_parts([task for ledger in ledgers for task in ledger.changed_tasks()]):
            await tx.tasks.save(rows)
        runs = (ledger.changed_run() for ledger in ledgers)
        await tx.runs.save([run for run in runs if run is not None])
        results = [TaskResult(key, data) for ledger in ledgers for key, data in ledger.results]
        await tx.history.add_results(results)
        attempts = [attempt for ledger in ledgers for attempt in ledger.attempts]
        for history in _in_parts(attempts):
            await tx.history.add_attempts(history)
        facts: list[Fact] = [fact for ledger in ledgers for fact in ledger.facts]
        for told in _in_parts(facts):
            await tx.outbox.append(encode_facts(told))

    def _open(self, runs: Sequence[Run]) -> None:
        plans, broken = self._plans.of(runs)
        for run in runs:
            if run.version_id in broken:
                raise MalformedRun(run.id, broken[run.version_id])
            plan = plans[run.version_id]
            self.ledgers[run.id] = Ledger(run, plan, self.now, self._chance, self._rows_max)

    def supply(self, tasks: Sequence[TaskRun]) -> None:
        """Hand locked rows to their ledgers."""
        by_run: dict[RunId, list[TaskRun]] = defaultdict(list)
        for task in tasks:
            by_run[task.run_id].append(task)
        for run_id, rows in by_run.items():
            ledger = self.ledgers[run_id]
            if any(not 0 <= row.node < len(ledger.plan.nodes) for row in rows):
                raise MalformedRun(run_id, "a task stands for no node of the definition")
            ledger.supply(rows)

    def _spend(self, ledger: Ledger, step: Callable[[], None]) -> None:
        """Take a step of one ledger out of the bound that all ledgers share."""
        ledger.rows_left = before = min(ledger.rows_left, self._rows_left)
        step()
        self._rows_left -= before - ledger.rows_left

    def _wanted(self) -> list[TaskKey]:
        keys = (
            TaskKey(run_id, position)
            for run_id, ledger in self.ledgers.items()
            for position in ledger.wanted()
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


def _in_parts(rows: list[T]) -> Iterator[list[T]]:
    for first in range(0, len(rows), STATEMENT_ROWS_MAX):
        yield rows[first : first + STATEMENT_ROWS_MAX]
