"""Dead letters: FAILED tasks, and how to try them again."""

from __future__ import annotations

from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import Lane, TaskKey
from tidemill.domain.reopening import replay as reopen
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import TASKS_MAX
from tidemill.engine.book import Book
from tidemill.engine.plans import Plans
from tidemill.engine.retrying import with_plans
from tidemill.ports.bus import Bus, Hint
from tidemill.ports.store import Store


async def replay(store: Store, bus: Bus, key: TaskKey) -> Run:
    """Try one dead letter again: its run reopens, what waited for it waits again.

    The whole run is read and written in one transaction: a replay is rare, and a person waits.
    """
    plans = Plans()
    generation: int | None = None

    async def once() -> tuple[Run, Lane]:
        nonlocal generation
        async with store.transaction() as tx:
            book = Book(tx, plans, await tx.now(), lambda: 0.5, 2 * TASKS_MAX)
            await book.open_runs([key.run_id], wait=True)
            if key.run_id not in book.ledgers:
                raise NotFound(f"no run {key.run_id}, or it is in quarantine")
            ledger = book.ledgers[key.run_id]
            ledger.supply(await tx.tasks.lock_states(key.run_id, list(TaskState), 2 * TASKS_MAX))
            task = ledger.task(key.position)
            if task is None:
                raise NotFound(f"run {key.run_id} has no task at position {key.position}")
            lane = Lane(task.namespace, task.route, task.priority)
            if generation is not None and ledger.run.generation > generation:
                return ledger.run, lane  # an earlier try was committed, its reply lost
            generation = ledger.run.generation
            reopen(ledger, key.position)
            await book.follow()
            await book.write()
            return ledger.run, lane

    run, lane = await with_plans(store, plans, once)
    await bus.send_hint(Hint(runs=(key.run_id,), lanes=(lane,)))
    return run
