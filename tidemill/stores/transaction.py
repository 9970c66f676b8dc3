"""A transaction as the engine sees it: the tables over one set of statements."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidemill.domain.identifiers import Moment
from tidemill.domain.task_run import TaskRun
from tidemill.ports.store import Beginning, Changes, NewRun, Opened, Opening, Template
from tidemill.stores.statements import Statements
from tidemill.stores.tables.definitions import Definitions
from tidemill.stores.tables.history import History
from tidemill.stores.tables.identity import StoreIdentity
from tidemill.stores.tables.outbox import Outbox
from tidemill.stores.tables.runs import Runs
from tidemill.stores.tables.secrets import StoreSecrets
from tidemill.stores.tables.sessions import Sessions
from tidemill.stores.tables.starts import Starts
from tidemill.stores.tables.tasks import Tasks

_replace = msgspec.structs.replace


class StoreTransaction:
    """Implements ports.store.Transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self.runs = Runs(statements)
        self.tasks = Tasks(statements)
        self.sessions = Sessions(statements)
        self.starts = Starts(statements)
        self.definitions = Definitions(statements)
        self.history = History(statements)
        self.outbox = Outbox(statements)

    @property
    def identity(self) -> StoreIdentity:
        """Made when it is asked for: most transactions are not about it."""
        return StoreIdentity(self._statements)

    @property
    def secrets(self) -> StoreSecrets:
        """The same."""
        return StoreSecrets(self._statements)

    async def now(self) -> Moment:
        """The clock of the database, at this instant."""
        return int((await self._statements.fetch("now"))[0][0])

    async def open(self, opening: Opening) -> Opened:
        """Lock the sessions, then the runs, then the tasks of the runs had."""
        alive = await self.sessions.lock(opening.sessions)
        now = await self.now()
        runs = await self.runs.lock(opening.runs, wait=opening.wait)
        had = {run.id for run in runs}
        tasks = await self.tasks.lock([key for key in opening.tasks if key.run_id in had])
        return Opened(now, alive, runs, tasks)

    async def begin(self, templates: Sequence[Template], runs: Sequence[Beginning]) -> None:
        """Insert new runs with their tasks, in the order given."""
        new_runs, tasks = list[NewRun](), list[TaskRun]()
        for run_id, number, key, data in runs:
            template = templates[number]
            new_runs.append(NewRun(run=_replace(template.run, id=run_id, key=key), input=data))
            tasks += [_replace(task, run_id=run_id) for task in template.tasks]
        await self.runs.add(new_runs)
        await self.tasks.add(tasks)

    async def write(self, changes: Changes) -> None:
        """Save and add it all, facts last."""
        await self.tasks.add(changes.new_tasks)
        await self.tasks.save(changes.tasks)
        await self.runs.save(changes.runs)
        await self.history.add_results(changes.results)
        await self.history.add_attempts(changes.attempts)
        for facts in changes.facts:
            await self.outbox.append(facts)
