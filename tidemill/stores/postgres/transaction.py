"""A transaction on PostgreSQL: a turn is begun with one statement, and written with one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.json import Encoder

from tidemill.domain.identifiers import SessionId
from tidemill.ports.store import FORMAT_MAX, Beginning, Changes, Opened, Opening, Template
from tidemill.stores.postgres.connection import joined_ids
from tidemill.stores.postgres.statements import columns
from tidemill.stores.rows import (
    RUN_WIDTH,
    run_from_row,
    run_to_shared_row,
    task_from_row,
    task_to_row,
)
from tidemill.stores.transaction import StoreTransaction

_encode = Encoder().encode

TEMPLATES_MAX = 50
"""Each run looks for its tasks among those of all templates, so there should be few."""


class PostgresTransaction(StoreTransaction):
    """Implements ports.store.Transaction in fewer round trips."""

    async def open(self, opening: Opening) -> Opened:
        """Lock the sessions, then the runs, then the tasks of the runs had."""
        if opening.wait:
            return await super().open(opening)
        positions: dict[str, set[int]] = {run_id: set() for run_id in sorted(opening.runs)}
        for run_id, position in opening.tasks:
            if run_id in positions:
                positions[run_id].add(position)
        rows = await self._statements.fetch(
            "open_turn",
            sorted(set(opening.sessions)),
            joined_ids(positions),
            ",".join([" ".join(map(str, sorted(places))) for places in positions.values()]),
            FORMAT_MAX,
        )
        runs = {row[0]: row for row in rows if row[0] is not None}
        alive, now = rows[-1][-2:]
        return Opened(
            now,
            {SessionId(one) for one in alive.split(",")} if alive else set(),
            [run_from_row(row) for row in runs.values()],
            [task_from_row(row[RUN_WIDTH:]) for row in rows if row[RUN_WIDTH] is not None],
        )

    async def begin(self, templates: Sequence[Template], runs: Sequence[Beginning]) -> None:
        """Insert new runs with their tasks. What they share travels once, with a number per run."""
        if len(templates) > TEMPLATES_MAX:
            await super().begin(templates, runs)
            return
        ids = joined_ids([one.run_id for one in runs])
        numbers = ",".join([str(one.template + 1) for one in runs])  # as arrays are counted there
        keys = [one.key for one in runs] if any(one.key for one in runs) else None
        inputs = [one.input for one in runs]
        shared = columns([run_to_shared_row(template.run) for template in templates])
        await self._statements.execute("add_runs_alike", ids, numbers, keys, inputs, *shared)
        await self.runs.label((one.run_id, templates[one.template].run) for one in runs)
        tasks = [
            (number, *task_to_row(task)[1:])
            for number, template in enumerate(templates, start=1)
            for task in template.tasks
        ]
        if tasks:
            await self._statements.execute("add_tasks_alike", ids, numbers, *columns(tasks))

    async def write(self, changes: Changes) -> None:
        """Save and add it all. What is rare is written before, by the verbs of the tables."""
        await self.tasks.add(changes.new_tasks)
        await self.history.add_attempts(changes.attempts)
        # An error may quote a NUL character, and no JSON value of the database holds one.
        await self.tasks.save([task for task in changes.tasks if task.error is not None])
        if not (changes.tasks or changes.runs or changes.results or changes.facts):
            return
        tasks = _text([task for task in changes.tasks if task.error is None])
        results = await self._results(changes)
        ((number,),) = await self._statements.fetch(
            "write_turn", tasks, _text(changes.runs), *results, changes.facts
        )
        self.outbox.latest = max(self.outbox.latest, number or 0)

    async def _results(self, changes: Changes) -> tuple[str, list[bytes]]:
        """Keys of results, and what they are; their namespaces are those of the tasks that ended
        with them.
        """
        namespaces = {task.run_id: task.namespace for task in changes.tasks}
        keys = [_ResultKey(*key, namespaces.get(key.run_id)) for key, _ in changes.results]
        if all(key.namespace is not None for key in keys):
            return _text(keys), [data for _, data in changes.results]
        await self.history.add_results(changes.results)  # alone: the database looks for their runs
        return "[]", []


class _ResultKey(Struct):
    run_id: str
    position: int
    namespace: str | None


def _text(values: Sequence[Struct]) -> str:
    return _encode(values).decode()
