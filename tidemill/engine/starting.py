"""Committing starts: many runs in one transaction, a wrong one refused alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from tidemill.domain.errors import Conflict, TidemillError, Unavailable
from tidemill.domain.fact_builders import run_fact
from tidemill.domain.facts import AlikeFacts, FactType, joined_facts
from tidemill.domain.identifiers import SECOND, Lane, Moment, RunId
from tidemill.domain.ledger import Journal, Ledger
from tidemill.domain.run import Run, RunKind, RunState
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.engine.preparing import COMMIT_ROWS_MAX, Shape, Start
from tidemill.engine.retrying import retrying
from tidemill.ports.bus import Hint
from tidemill.ports.rows import Beginning, StartKey, Template, Version
from tidemill.ports.store import Store, Transaction

_replace = msgspec.structs.replace
NO_RUN = RunId("")


class Started(msgspec.Struct, frozen=True):
    """The run of a request; not created when its key had started one before."""

    run_id: RunId
    created: bool
    at: Moment = 0  # when it was created; 0 when that was not now


Outcome: TypeAlias = Started | TidemillError


class Committed(NamedTuple):
    """What became of each start, and what schedulers should look at."""

    outcomes: list[Outcome]
    hint: Hint


def batches(starts: Sequence[Start]) -> Iterator[list[Start]]:
    """Starts in commits of at most COMMIT_ROWS_MAX task rows."""
    batch: list[Start] = []
    rows = 0
    for one in starts:
        if batch and rows + one.rows > COMMIT_ROWS_MAX:
            yield batch
            batch, rows = [], 0
        batch.append(one)
        rows += one.rows
    if batch:
        yield batch


async def commit(store: Store, batch: Sequence[Start]) -> Committed:
    """Start runs in one transaction; Unavailable when the store is.

    When the store refuses the batch for good, it is halved until the culprit stands alone.
    """
    tries = 0

    async def once() -> Committed:
        nonlocal tries
        tries += 1
        async with store.transaction() as tx:
            if store.alarm():  # what was stored before may be lost
                _forget_stored(batch)
            committed = await write_starts(tx, batch, await tx.now(), again=tries > 1)
        for one in batch:
            one.shape.stored = True
        return committed

    try:
        return await retrying(once)
    except Unavailable:
        raise
    except TidemillError as error:
        if len(batch) == 1:
            return Committed([error], Hint())
    half = len(batch) // 2
    left, right = await commit(store, batch[:half]), await commit(store, batch[half:])
    return Committed(left.outcomes + right.outcomes, merged([left.hint, right.hint]))


def _forget_stored(batch: Sequence[Start]) -> None:
    for one in batch:
        one.shape.stored = False


def merged(hints: Sequence[Hint]) -> Hint:
    """Several hints as one."""
    lanes = sorted({lane for hint in hints for lane in hint.lanes})
    return Hint(runs=tuple(run for hint in hints for run in hint.runs), lanes=tuple(lanes))


async def write_starts(
    tx: Transaction, batch: Sequence[Start], now: Moment, *, again: bool
) -> Committed:
    """Write runs in a transaction of the caller; `again` after a commit of unknown result."""
    await tx.starts.add_versions(_versions(batch, now))
    outcomes = await _take_keys(tx, batch, now)
    fresh = [one for one, told in zip(batch, outcomes, strict=True) if _is_own(one, told)]
    if again and fresh:
        # A run that is there already is this very batch, committed when the reply was lost.
        written = {run.id for run in await tx.runs.peek([one.run_id for one in fresh])}
        fresh = [one for one in fresh if one.run_id not in written]
    ready = await _write_runs(tx, fresh, now)
    large = tuple(one.run_id for one in batch if one.shape.is_large)
    return Committed(outcomes, Hint(runs=large, lanes=tuple(sorted(ready))))


def _is_own(one: Start, outcome: Outcome) -> bool:
    return isinstance(outcome, Started) and outcome.run_id == one.run_id


def _versions(batch: Sequence[Start], now: Moment) -> list[Version]:
    shapes = {one.shape.version_id: one.shape for one in batch if not one.shape.stored}
    return [
        Version(
            id=version_id,
            namespace=shape.namespace,
            name=shape.workflow.name,
            spec=shape.spec,
            created_at=now,
        )
        for version_id, shape in sorted(shapes.items())
    ]


async def _take_keys(tx: Transaction, batch: Sequence[Start], now: Moment) -> list[Outcome]:
    """What becomes of each start, as far as keys are concerned."""
    wished = [one.start_key(now) for one in batch if one.key is not None]
    holders = iter(zip(wished, await tx.starts.take_keys(wished), strict=True))
    return [
        Started(one.run_id, True, now) if one.key is None else _held(one, *next(holders), now)
        for one in batch
    ]


def _held(one: Start, wished: StartKey, holder: StartKey, now: Moment) -> Outcome:
    if holder.run_id == one.run_id:
        return Started(one.run_id, True, now)
    if one.kind is RunKind.DAG:
        text = f"{one.key!r} is there already: choose another id"
        return Conflict(text, code="ALREADY_EXISTS")
    if holder.body_hash != wished.body_hash:
        text = f"key {one.key!r} has started run {holder.run_id} with another workflow or input"
        return Conflict(text, code="KEY_REUSED")
    return Started(holder.run_id, False)


class _Shared(NamedTuple):
    """What every run of a shape begins with at one moment, but for its own id."""

    run: Run
    tasks: list[TaskRun]
    facts: AlikeFacts


async def _write_runs(tx: Transaction, starts: Sequence[Start], now: Moment) -> set[Lane]:
    if not starts:
        return set()
    shared = {id(one.shape): one.shape for one in starts}
    begun = {key: _begin(shape, now) for key, shape in shared.items()}
    templates = _Templates(begun)
    await tx.begin(
        templates.all,
        [Beginning(one.run_id, templates.number(one), one.key, one.input) for one in starts],
    )
    await tx.outbox.append(
        joined_facts([begun[id(one.shape)].facts.of(one.run_id) for one in starts])
    )
    return {lane for one in begun.values() for lane in _ready_lanes(one.tasks)}


class _Templates:
    """What is the same for several runs: shape, kind and labels."""

    def __init__(self, shared: Mapping[int, _Shared]) -> None:
        self.all: list[Template] = []
        self._shared = shared
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, one: Start) -> int:
        """Which of them a run begins with."""
        key = (id(one.shape), one.kind, *one.labels.items())
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.all)
            run, tasks, _ = self._shared[id(one.shape)]
            self.all.append(Template(_replace(run, kind=one.kind, labels=one.labels), tasks))
        return number


def _ready_lanes(tasks: Sequence[TaskRun]) -> set[Lane]:
    return {
        Lane(task.namespace, task.route, task.priority)
        for task in tasks
        if task.state is TaskState.READY
    }


def _begin(shape: Shape, now: Moment) -> _Shared:
    run = _new_run(shape, now)
    if shape.is_large:
        return _Shared(run, [], AlikeFacts([run_fact(run, FactType.WORKFLOW_ACCEPTED, now)]))
    return _unfolded(run, shape, now)


def _new_run(shape: Shape, now: Moment) -> Run:
    workflow = shape.workflow
    limit = workflow.timeout_seconds
    return Run(
        id=NO_RUN,
        namespace=shape.namespace,
        workflow=workflow.name,
        version_id=shape.version_id,
        state=RunState.PENDING,
        open=len(shape.plan.nodes),
        next_position=0,
        created_at=now,
        due_at=None if limit is None else now + round(limit * SECOND),
    )


def _unfolded(run: Run, shape: Shape, now: Moment) -> _Shared:
    """A small run goes straight to RUNNING with all its tasks, its roots READY."""
    plan = shape.plan
    # Telling counts edges, and a cascade may run down all of them.
    edges = sum(len(node.parents) for node in plan.nodes)
    journal = Journal()
    ledger = Ledger(run, plan, now, lambda: 0.5, 2 * len(plan.nodes) + edges, journal)
    ledger.unfold()
    ledger.supply(journal.new_tasks)
    ledger.tell()
    ledger.settle()
    tasks = (ledger.task(node.index) for node in plan.nodes)
    written = [task for task in tasks if task is not None]
    return _Shared(ledger.run, written, AlikeFacts(journal.facts))
