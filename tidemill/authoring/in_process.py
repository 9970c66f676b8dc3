"""A run within this process: the real engine over a store in memory, and a worker beside it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from tidemill.authoring.errors import WorkflowFailed
from tidemill.authoring.secrets import secrets_of_environment
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import TidemillError
from tidemill.domain.facts import Fact, decode_facts
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.task_run import TaskKind, TaskRun, TaskState
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.stores.sqlite.connection import connect_writer
from tidemill.stores.sqlite.migrate import migrate
from tidemill.stores.sqlite.statements import WriteStatements
from tidemill.stores.sqlite.store import SqliteStore
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Executor, Workshop
from tidemill.worker.executors.python import PythonExecutor
from tidemill.worker.library import Library, load_library
from tidemill.worker.link import DoorLink
from tidemill.worker.plugins import find_executors
from tidemill.worker.processes import Commands
from tidemill.worker.threads import Threads
from tidemill.worker.worker import Worker

NAMESPACE = "default"
MEMORY = ":memory:"
SLOTS = 64
FACT_ROWS_MAX = 100_000
TASKS_MAX = 200_000
PYTHON = "python"


class FunctionLibrary(Library):
    """Finds the functions that it was given, and others of modules that are imported anyway."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()
        self._given = functions

    def find(self, name: str) -> Callable[..., Any]:
        """The function called `module:function`."""
        if name in self._given:
            return self._given[name]
        return load_library([name.partition(":")[0]]).find(name)


class PoliteStore(SqliteStore):
    """Without threads a transaction never waits: let the others have a word in between."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(MEMORY, clock, threads=False, connect=_connect)
        self.written = asyncio.Event()
        self._pause = clock.sleep

    async def take_turn(self) -> None:
        """Wait until nobody else writes."""
        await self._pause(0)
        await super().take_turn()

    async def end_turn(self, statements: WriteStatements) -> None:
        """Tell whoever waits for something to happen."""
        await super().end_turn(statements)
        self.written.set()


def _connect(path: str) -> sqlite3.Connection:
    raw = connect_writer(path)
    raw.deserialize(_empty_database())
    return raw


@lru_cache(maxsize=1)
def _empty_database() -> bytes:
    """A database with all its tables: making them takes as long as a small run."""
    with closing(connect_writer(MEMORY)) as raw:
        migrate(raw)
        return raw.serialize()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The time of a run, and how often the parts look around."""

    clock: Clock
    entropy: Entropy
    scheduler: SchedulerConfig
    worker: WorkerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that has ended, with all that is known of it."""

    run: Run
    tasks: Mapping[str, TaskRun]  # by id, without the output
    results: Mapping[str, Any]
    output: Any
    facts: tuple[Fact, ...]

    def value(self) -> Any:
        """The output, or WorkflowFailed."""
        if self.run.state is RunState.SUCCEEDED:
            return self.output
        failed = [each for each in self.tasks.items() if each[1].state is TaskState.FAILED]
        task, row = min(failed, key=lambda each: each[1].ended_no or 0, default=(None, None))
        error = row.error if row is not None else None
        raise WorkflowFailed(self.run.workflow, self.run.state.value, task, error)


def run_blocking(
    definition: Workflow, value: Any, functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """The output of one run, for code without an event loop."""
    if loop_runs_here():
        raise RuntimeError("an event loop runs here already: use `await flow.run_async(...)`")
    return asyncio.run(run(definition, value, functions))


def loop_runs_here() -> bool:
    """Whether this thread runs an event loop right now."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def run(definition: Workflow, value: Any, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The output of one run; WorkflowFailed when it does not succeed."""
    clock, entropy = SystemClock(), SystemEntropy()
    workshop = Workshop(
        clock=clock,
        entropy=entropy,
        library=FunctionLibrary(functions),
        threads=Threads(SLOTS),
        commands=Commands(),
    )
    pace = Pace(
        clock=clock,
        entropy=entropy,
        scheduler=SchedulerConfig(),
        worker=WorkerConfig(name="here", slots=SLOTS, secrets=secrets_of_environment()),
    )
    executors = executors_for(definition, workshop)
    try:
        return (await carry_out(definition, value, executors, pace)).value()
    finally:
        await put_away(executors, workshop)


def executors_for(definition: Workflow, workshop: Workshop) -> dict[str, Executor]:
    """What the tasks of a definition need; plug-ins are looked for only where it needs some."""
    executors: dict[str, Executor] = {PYTHON: PythonExecutor(workshop)}
    if all(spec.executor == PYTHON for spec in definition.tasks):
        return executors
    return {**find_executors(workshop), **executors}


async def put_away(executors: Mapping[str, Executor], workshop: Workshop) -> None:
    """Let go of what executors hold, and of processes that they have started."""
    await asyncio.gather(*(executor.close() for executor in executors.values()))
    workshop.commands.close()


async def carry_out(
    definition: Workflow, value: Any, executors: Mapping[str, Executor], pace: Pace
) -> Ended:
    """Run a definition to its end, whatever that is."""
    store, bus = PoliteStore(pace.clock), MemoryBus()
    try:
        await store.migrate()
        scheduler = Scheduler(
            name="here",
            store=store,
            bus=bus,
            clock=pace.clock,
            entropy=pace.entropy,
            config=pace.scheduler,
        )
        door = [DoorLink(scheduler)]
        worker = Worker(pace.worker, door, executors, pace.clock, pace.entropy)
        async with _at_work(scheduler.run(), worker.run()) as duties:
            request = runs.StartRequest(workflow=anywhere(definition), input=value)
            [started] = await runs.start(store, bus, pace.entropy, [request])
            run = await _until_ended(store, started.run_id, duties)
            return await _read(store, definition, run)
    finally:
        await store.close()


def anywhere(definition: Workflow) -> Workflow:
    """The definition without what picks a worker or a process: here everything runs in this one."""
    return msgspec.structs.replace(definition, tasks=tuple(map(_anywhere, definition.tasks)))


def _anywhere(spec: TaskSpec) -> TaskSpec:
    params = spec.params
    if spec.executor == PYTHON:
        params = {name: value for name, value in params.items() if name != "isolation"}
    return msgspec.structs.replace(spec, queue="default", labels={}, params=params)


@asynccontextmanager
async def _at_work(*duties: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    tasks = [asyncio.create_task(duty) for duty in duties]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_ended(
    store: PoliteStore, run_id: RunId, duties: Sequence[asyncio.Task[Any]]
) -> Run:
    while True:
        store.written.clear()
        run = await store.reader.run(NAMESPACE, run_id)
        if run.state in RUN_ENDED:
            return run
        if run.quarantine is not None:
            raise TidemillError(f"the run cannot go on: {run.quarantine}")
        written = asyncio.create_task(store.written.wait())
        await asyncio.wait([written, *duties], return_when=asyncio.FIRST_COMPLETED)
        written.cancel()
        for duty in duties:
            if duty.done():
                duty.result()


async def _read(store: SqliteStore, definition: Workflow, run: Run) -> Ended:
    rows = await store.reader.tasks(NAMESPACE, run.id, -1, TASKS_MAX)
    found = await store.payloads.results([row.key for row in rows])
    ids = [spec.id for spec in definition.tasks]
    tasks = {ids[row.node]: row for row in rows if row.kind is TaskKind.TASK}
    output = [row.key for row in rows if row.kind is TaskKind.OUTPUT]
    return Ended(
        run=run,
        tasks=tasks,
        results={name: _decoded(found, row.key) for name, row in tasks.items()},
        output=_decoded(found, output[0]) if output else None,
        facts=await _facts(store),
    )


def _decoded(found: Mapping[TaskKey, bytes], key: TaskKey) -> Any:
    return msgspec.json.decode(found[key]) if key in found else None


async def _facts(store: SqliteStore) -> tuple[Fact, ...]:
    async with store.transaction() as tx:
        await tx.outbox.stamp(FACT_ROWS_MAX)
        rows = await tx.outbox.read(0, FACT_ROWS_MAX)
    return tuple(fact for row in rows for fact in decode_facts(row.facts))


__all__ = [
    "Ended",
    "FunctionLibrary",
    "Pace",
    "carry_out",
    "executors_for",
    "loop_runs_here",
    "put_away",
    "run",
    "run_blocking",
]
