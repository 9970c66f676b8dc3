"""Starting and stopping runs: one transaction each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from tidemill.domain.errors import Conflict, NotFound
from tidemill.domain.facts import Fact, FactType, encode_facts
from tidemill.domain.identifiers import SECOND, Lane, Moment, RunId
from tidemill.domain.inputs import prepare_input
from tidemill.domain.ledger import Ledger, run_fact
from tidemill.domain.plan import Plan, compile_plan, encode_workflow, version_of
from tidemill.domain.run import Run, RunState
from tidemill.domain.run_transitions import StopAsked, advance_run
from tidemill.domain.task_run import Reason, TaskRun, TaskState
from tidemill.domain.workflow import Workflow
from tidemill.engine.retrying import retrying
from tidemill.ports.bus import Bus, Hint
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import NewRun, StartKey, Store, Transaction, Version

COMMIT_ROWS_MAX = 2_000
"""Task rows in one commit of starts; a larger run is accepted alone, its tasks written by turns."""

KEY_LIFE = 24 * 3_600 * SECOND
"""How long an idempotency key lives at least."""

KEY_CHARACTERS_MAX = 256


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A wish to run a workflow, already checked by `check_workflow`."""

    workflow: Workflow
    input: Any = {}
    namespace: str = "default"
    key: str | None = None  # idempotency key


class Started(msgspec.Struct, frozen=True):
    """The run of a request; not created when its key had started one before."""

    run_id: RunId
    created: bool


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    """A request with everything worked out that does not need the store."""

    run_id: RunId
    namespace: str
    plan: Plan
    spec: bytes
    input: bytes
    key: str | None

    @property
    def body_hash(self) -> str:
        return hashlib.sha256(self.plan.version_id.encode() + b"\0" + self.input).hexdigest()

    @property
    def rows(self) -> int:
        return min(len(self.plan.nodes), COMMIT_ROWS_MAX)


async def start(
    store: Store, bus: Bus, entropy: Entropy, requests: Sequence[StartRequest]
) -> list[Started]:
    """Start a run for each request, or find the one that its key has started.

    InvalidInput when an input does not fit: nothing is stored then. Conflict when a key was used
    with another body: nothing is stored of the commit that it belongs to, at most 2,000 tasks.
    """
    plans: dict[tuple[str, bytes], Plan] = {}
    starts = [_prepare(request, entropy, plans) for request in requests]
    started: list[Started] = []
    for batch in _batches(starts):
        outcome, lanes = await retrying(partial(_commit, store, batch))
        started += outcome
        large = tuple(one.run_id for one in batch if len(one.plan.nodes) > COMMIT_ROWS_MAX)
        await bus.send_hint(Hint(runs=large, lanes=lanes))
    return started


async def cancel(store: Store, bus: Bus, run_id: RunId) -> Run:
    """Stop a run. Repeating it, or coming too late, is harmless."""

    async def stop() -> Run:
        async with store.transaction() as tx:
            now = await tx.now()
            runs = await tx.runs.lock([run_id], wait=True)
            if not runs:
                raise NotFound(f"no run {run_id}, or it is in quarantine")
            after = advance_run(runs[0], StopAsked(Reason.CANCELLED), now)
            if after != runs[0]:
                await tx.runs.save([after])
                fact = run_fact(after, FactType.WORKFLOW_STOPPING, now)
                await tx.outbox.append(encode_facts([fact]))
            return after

    run = await retrying(stop)
    await bus.send_hint(Hint(runs=(run_id,)))
    return run


def _prepare(
    request: StartRequest, entropy: Entropy, plans: dict[tuple[str, bytes], Plan]
) -> _Start:
    if request.key is not None and not 1 <= len(request.key) <= KEY_CHARACTERS_MAX:
        raise Conflict(f"an idempotency key has 1 to {KEY_CHARACTERS_MAX} characters")
    value = prepare_input(request.workflow.input, request.input)
    spec = encode_workflow(request.workflow)
    plan = plans.get((request.namespace, spec))
    if plan is None:
        plan = compile_plan(version_of(request.namespace, spec), request.workflow)
        plans[request.namespace, spec] = plan
    return _Start(
        run_id=entropy.run_id(),
        namespace=request.namespace,
        plan=plan,
        spec=spec,
        input=msgspec.json.encode(value, order="deterministic"),
        key=request.key,
    )


def _batches(starts: Sequence[_Start]) -> Iterator[list[_Start]]:
    batch: list[_Start] = []
    rows = 0
    for one in starts:
        if batch and rows + one.rows > COMMIT_ROWS_MAX:
            yield batch
            batch, rows = [], 0
        batch.append(one)
        rows += one.rows
    if batch:
        yield batch


async def _commit(store: Store, batch: Sequence[_Start]) -> tuple[list[Started], tuple[Lane, ...]]:
    async with store.transaction() as tx:
        now = await tx.now()
        await tx.starts.add_versions(_versions(batch, now))
        holders = await _take_keys(tx, batch, now)
        # A run that is there already is this very batch, committed when the reply was lost.
        written = {run.id for run in await tx.runs.peek([one.run_id for one in batch])}
        fresh = [
            one for one in batch if holders[one.run_id] == one.run_id and one.run_id not in written
        ]
        tasks = await _write_runs(tx, fresh, now)
    ready = {
        Lane(task.namespace, task.route, task.priority)
        for task in tasks
        if task.state is TaskState.READY
    }
    started = [Started(holders[one.run_id], holders[one.run_id] == one.run_id) for one in batch]
    return started, tuple(sorted(ready))


def _versions(batch: Sequence[_Start], now: Moment) -> list[Version]:
    versions = {
        one.plan.version_id: Version(
            id=one.plan.version_id,
            namespace=one.namespace,
            name=one.plan.workflow.name,
            spec=one.spec,
            created_at=now,
        )
        for one in batch
    }
    return [versions[name] for name in sorted(versions)]


async def _take_keys(tx: Transaction, batch: Sequence[_Start], now: Moment) -> dict[RunId, RunId]:
    """For each run about to start, the run that holds its key."""
    wished = {
        (one.namespace, one.key): StartKey(
            namespace=one.namespace,
            kind="run",
            key=one.key,
            body_hash=one.body_hash,
            run_id=one.run_id,
            expires_at=now + KEY_LIFE,
        )
        for one in reversed(batch)
        if one.key is not None
    }
    held = {
        (key.namespace, key.key): key for key in await tx.starts.take_keys(list(wished.values()))
    }
    holders: dict[RunId, RunId] = {}
    for one in batch:
        holder = held.get((one.namespace, one.key or ""))
        if holder is None:
            holders[one.run_id] = one.run_id
        elif holder.body_hash != one.body_hash:
            what = "with another workflow or input"
            raise Conflict(f"key {one.key!r} has started run {holder.run_id} {what}")
        else:
            holders[one.run_id] = holder.run_id
    return holders


async def _write_runs(tx: Transaction, starts: Sequence[_Start], now: Moment) -> list[TaskRun]:
    runs: list[NewRun] = []
    tasks: list[TaskRun] = []
    facts: list[Fact] = []
    for one in starts:
        run = _new_run(one, now)
        if len(one.plan.nodes) > COMMIT_ROWS_MAX:
            facts.append(run_fact(run, FactType.WORKFLOW_ACCEPTED, now))
        else:
            run, rows, told = _unfolded(run, one.plan, now)
            tasks += rows
            facts += told
        runs.append(NewRun(run=run, input=one.input))
    await tx.runs.add(runs)
    await tx.tasks.add(tasks)
    if facts:
        await tx.outbox.append(encode_facts(facts))
    return tasks


def _new_run(one: _Start, now: Moment) -> Run:
    workflow = one.plan.workflow
    limit = workflow.timeout_seconds
    return Run(
        id=one.run_id,
        namespace=one.namespace,
        workflow=workflow.name,
        version_id=one.plan.version_id,
        state=RunState.PENDING,
        open=len(one.plan.nodes),
        next_position=0,
        labels=workflow.labels,
        created_at=now,
        due_at=None if limit is None else now + round(limit * SECOND),
    )


def _unfolded(run: Run, plan: Plan, now: Moment) -> tuple[Run, list[TaskRun], list[Fact]]:
    """A small run goes straight to RUNNING with all its tasks, its roots READY."""
    # Telling counts edges, and a cascade may run down all of them.
    edges = sum(len(node.parents) for node in plan.nodes)
    ledger = Ledger(run, plan, now, lambda: 0.5, rows_max=2 * len(plan.nodes) + edges)
    ledger.unfold()
    ledger.supply(ledger.new_tasks)
    ledger.tell()
    ledger.settle()
    tasks = (ledger.task(node.index) for node in plan.nodes)
    return ledger.run, [task for task in tasks if task is not None], ledger.facts
