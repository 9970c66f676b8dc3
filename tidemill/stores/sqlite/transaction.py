"""A transaction on SQLite: runs that begin alike are written with one statement for each task."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.ports.store import Beginning, Template
from tidemill.stores.rows import run_to_shared_row, task_to_row
from tidemill.stores.statements import Row
from tidemill.stores.transaction import StoreTransaction

ALIKE_MIN = 8
"""Runs of one template, on average: fewer are written row by row."""

INPUTS_BYTES_MAX = 1024 * 1024
"""Of inputs, which travel as JSON inside JSON: more are written row by row."""


class SqliteTransaction(StoreTransaction):
    """Implements ports.store.Transaction; long batches spend no time in the driver."""

    async def begin(self, templates: Sequence[Template], runs: Sequence[Beginning]) -> None:
        """Insert new runs with their tasks; the place of each in its lane is worked out first."""
        size = sum(len(one.input) for one in runs)
        if len(runs) < ALIKE_MIN * len(templates) or size > INPUTS_BYTES_MAX:
            await super().begin(templates, runs)
            return
        batches: list[list[Row]] = [[] for _ in templates]
        for place, (run_id, number, key, data) in enumerate(runs):
            batches[number].append((run_id, place, key, data.decode()))
        places = max(len(_ready(template.tasks)) for template in templates)
        ((first,),) = await self._statements.fetch("take_places", places * len(runs))
        for template, batch in zip(templates, batches, strict=True):
            shared = run_to_shared_row(template.run)
            await self._statements.fetch_batch("add_runs_alike", batch, *shared)
            await self._add_tasks(template.tasks, [row[:2] for row in batch], first, places)
        await self.runs.label((one.run_id, templates[one.template].run) for one in runs)

    async def _add_tasks(
        self, tasks: Sequence[TaskRun], batch: Sequence[Row], first: int, places: int
    ) -> None:
        ready = {task.position: place for place, task in enumerate(_ready(tasks))}
        for task in tasks:
            mine = first + ready.get(task.position, 0)
            row = task_to_row(task)[1:]
            await self._statements.fetch_batch("add_tasks_alike", batch, *row, mine, places)


def _ready(tasks: Sequence[TaskRun]) -> list[TaskRun]:
    return [task for task in tasks if task.state is TaskState.READY]
