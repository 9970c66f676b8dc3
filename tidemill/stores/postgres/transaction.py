"""A transaction on PostgreSQL: a turn is begun with one statement, and written with one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.json import Encoder

from tidemill.domain.identifiers import SessionId
from tidemill.ports.store import FORMAT_MAX, Changes, Opened, Opening
from tidemill.stores.postgres.statements import columns
from tidemill.stores.rows import run_from_row, task_from_row
from tidemill.stores.statements import Row
from tidemill.stores.transaction import StoreTransaction

_encode = Encoder().encode


class PostgresTransaction(StoreTransaction):
    """Implements ports.store.Transaction in fewer round trips."""

    async def open(self, opening: Opening) -> Opened:
        """Lock the sessions, then the runs, then the tasks of the runs had."""
        if opening.wait:
            return await super().open(opening)
        keys = sorted(set(opening.tasks))
        rows = await self._statements.fetch(
            "open_turn",
            sorted(set(opening.sessions)),
            sorted(set(opening.runs)),
            [key.run_id for key in keys],
            [key.position for key in keys],
            FORMAT_MAX,
        )
        had: dict[str, list[Row]] = {"task": [], "run": [], "session": [], "now": []}
        for kind, row in rows:
            had[kind].append(row)
        return Opened(
            had["now"][0][0],
            {SessionId(row[0]) for row in had["session"]},
            [run_from_row(row) for row in had["run"]],
            [task_from_row(row) for row in had["task"]],
        )

    async def write(self, changes: Changes) -> None:
        """Save and add it all. What is rare is written before, by the verbs of the tables."""
        await self.tasks.add(changes.new_tasks)
        await self.history.add_attempts(changes.attempts)
        # An error may quote a NUL character, and no JSON value of the database holds one.
        await self.tasks.save([task for task in changes.tasks if task.error is not None])
        tasks = _text([task for task in changes.tasks if task.error is None])
        if changes.runs or changes.results:
            results = await self._results(changes)
            await self._write("write_turn", tasks, _text(changes.runs), *results, changes.facts)
        elif changes.tasks or changes.facts:
            await self._write("write_grants", tasks, changes.facts)

    async def _write(self, name: str, *values: object) -> None:
        ((number,),) = await self._statements.fetch(name, *values)
        self.outbox.latest = max(self.outbox.latest, number or 0)

    async def _results(self, changes: Changes) -> list[list[object]]:
        """The columns of results. Their namespaces are those of the tasks that ended with them."""
        namespaces = {task.run_id: task.namespace for task in changes.tasks}
        rows = [(*key, data, namespaces.get(key.run_id)) for key, data in changes.results]
        if None in {row[-1] for row in rows}:  # results alone: the database looks for their runs
            await self.history.add_results(changes.results)
            rows = []
        return columns(rows) if rows else [[], [], [], []]


def _text(values: Sequence[Struct]) -> str:
    return _encode(values).decode()
