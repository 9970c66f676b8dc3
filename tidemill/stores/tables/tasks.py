"""The task table."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.domain.identifiers import Lane, RunId, TaskKey
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.ports.store import FORMAT_MAX, Claim
from tidemill.stores.rows import (
    RUN_WIDTH,
    run_from_row,
    task_from_row,
    task_to_changes,
    task_to_row,
)
from tidemill.stores.statements import Statements

INPUT_BYTES_MAX = 1_024
"""Inputs of runs up to this size come along with a claim."""


class Tasks:
    """Implements ports.store.TaskTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, tasks: Sequence[TaskRun]) -> None:
        """Insert new tasks. One that is there already is left as it is."""
        await self._statements.execute_batch("add_task", [task_to_row(task) for task in tasks])

    async def lock(self, keys: Sequence[TaskKey]) -> list[TaskRun]:
        """Lock and return tasks of runs that this transaction has locked, in order of key."""
        rows = await self._statements.fetch_batch("lock_tasks", sorted(set(keys)), FORMAT_MAX)
        return [task_from_row(row) for row in rows]

    async def lock_states(
        self, run_id: RunId, states: Sequence[TaskState], limit: int
    ) -> list[TaskRun]:
        """Lock and return tasks of one run in any of the states, lowest position first."""
        wanted = [(state.value,) for state in states]
        rows = await self._statements.fetch_batch(
            "lock_task_states", wanted, run_id, limit, FORMAT_MAX
        )
        return [task_from_row(row) for row in rows]

    async def lock_ready(
        self, run_id: RunId, *, paused: bool, start: int, limit: int
    ) -> list[TaskRun]:
        """Lock and return READY tasks of one run from position `start` on, in order of position."""
        rows = await self._statements.fetch(
            "lock_ready_tasks", run_id, paused, start, limit, FORMAT_MAX
        )
        return [task_from_row(row) for row in rows]

    async def lock_untold(self, run_id: RunId, limit: int) -> list[TaskRun]:
        """Lock and return ended tasks of one run that have children left to tell."""
        rows = await self._statements.fetch("lock_untold_tasks", run_id, limit, FORMAT_MAX)
        return [task_from_row(row) for row in rows]

    async def claim(self, lane: Lane, *, floor: int, limit: int, alone: bool) -> Claim:
        """Lock up to `limit` READY tasks of a lane in order of arrival, skipping locked ones."""
        name = "claim_ready_alone" if alone else "claim_ready"
        rows = await self._statements.fetch(name, *lane, floor, limit, FORMAT_MAX, INPUT_BYTES_MAX)
        tasks = [task_from_row(row[RUN_WIDTH + 1 :]) for row in rows]
        # Many tasks of one run come with as many copies of it.
        runs = {row[0]: row for row in rows}
        floor = rows[-1][-1] + 1 if rows else floor
        inputs = {key: row[RUN_WIDTH] for key, row in runs.items() if row[RUN_WIDTH] is not None}
        return Claim(tasks, floor, [run_from_row(row) for row in runs.values()], inputs)

    async def save(self, tasks: Sequence[TaskRun]) -> None:
        """Write back changed tasks; what becomes READY, or READY under another hold, goes last."""
        await self._statements.execute_batch("save_task", [task_to_changes(task) for task in tasks])

    async def discard(self, key: TaskKey) -> None:
        """Take a FAILED task out of the dead letters, until it fails again."""
        await self._statements.execute("discard_task", *key)
