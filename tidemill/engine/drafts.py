"""Drafts: workflows that are put together step by step, and started when they are ready.

A draft belongs to a workflow, whose row is its lock: two edges that would close a circle together
come one after the other. Starting it makes a release of it and a run, in one transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

import msgspec

from tidemill.domain.cycles import find_cycles
from tidemill.domain.errors import InvalidInput, NotFound, Problem, TidemillError
from tidemill.domain.identifiers import Moment
from tidemill.domain.slugs import slug, slugs
from tidemill.domain.workflow import (
    NAME_CHARACTERS_MAX,
    PAYLOAD,
    TITLE_CHARACTERS_MAX,
    RetryPolicy,
    Source,
    TaskSpec,
    Workflow,
)
from tidemill.engine.definitions import release
from tidemill.engine.preparing import ShapeCache, StartRequest, prepare
from tidemill.engine.retrying import retrying
from tidemill.engine.shapes import RETRIES_DEFAULT, check_task
from tidemill.engine.starting import Started, write_starts
from tidemill.ports.bus import Bus, Hint
from tidemill.ports.entropy import Entropy
from tidemill.ports.rows import WorkflowRow
from tidemill.ports.store import Store, Transaction

DRAFT_TASKS_MAX = 1_000
DRAFT_BYTES_MAX = 1024 * 1024
NAME_TRIES = 20
SUFFIX_DIGITS = 6

T = TypeVar("T")
_replace = msgspec.structs.replace


class DraftTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a draft, known by an id of its own."""

    id: str
    name: str
    type: str
    payload: Any = None
    max_retries: int = RETRIES_DEFAULT
    depends_on: tuple[str, ...] = ()


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What has been put together so far. A task's place is its position in runs of the draft."""

    tasks: tuple[DraftTask, ...] = ()


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A wish for a task."""

    name: str
    type: str
    payload: Any = None
    max_retries: int = RETRIES_DEFAULT


async def create(store: Store, entropy: Entropy, namespace: str, title: str) -> WorkflowRow:
    """An empty draft. Several may have one title: each has its id, and a name of its own."""
    if not 1 <= len(title) <= TITLE_CHARACTERS_MAX or not title.isprintable():
        text = f"must be plain text of 1 to {TITLE_CHARACTERS_MAX} characters"
        raise InvalidInput([Problem(path="name", message=text, code="BAD_NAME")])
    workflow_id = entropy.run_id()
    plain = slug(title, "workflow")

    async def once() -> WorkflowRow:
        async with store.transaction() as tx:
            there = await tx.definitions.lock_id(namespace, workflow_id)
            if there is not None:
                return there  # an earlier try was committed, its reply lost
            now = await tx.now()
            for number in range(NAME_TRIES):
                row = WorkflowRow(
                    id=workflow_id,
                    namespace=namespace,
                    name=_name(plain, workflow_id, number),
                    title=title,
                    draft=_encode(Draft()),
                    created_at=now,
                    changed_at=now,
                )
                if await tx.definitions.add(row):
                    return row
        raise TidemillError(f"no name is left for {title!r}")

    return await retrying(once)


def _name(plain: str, workflow_id: str, number: int) -> str:
    """The name itself, or with the end of the id behind it: more of it each time."""
    suffix = "" if number == 0 else f"-{workflow_id.replace('-', '')[-SUFFIX_DIGITS - number :]}"
    return plain[: NAME_CHARACTERS_MAX - len(suffix)] + suffix


async def read(store: Store, namespace: str, workflow_id: str) -> tuple[WorkflowRow, Draft]:
    """A draft and what is in it; NotFound when there is none with this id."""
    row = await store.reader.workflow_by_id(namespace, workflow_id)
    return row, _draft(row)


async def add_task(
    store: Store,
    entropy: Entropy,
    namespace: str,
    workflow_id: str,
    wish: TaskPlan,
    types: Collection[str],
) -> DraftTask:
    """Add a task; InvalidInput when nobody knows its type."""
    check_task(wish.name, wish.type, wish.max_retries, types)
    task = DraftTask(
        id=entropy.run_id(),
        name=wish.name,
        type=wish.type,
        payload=wish.payload,
        max_retries=wish.max_retries,
    )

    async def change(tx: Transaction, row: WorkflowRow, now: Moment) -> DraftTask:
        draft = _draft(row)
        if task.id not in {one.id for one in draft.tasks}:
            await _save(tx, row, _replace(draft, tasks=(*draft.tasks, task)), now)
        return task

    return await _changed(store, namespace, workflow_id, change)


async def add_dependency(
    store: Store, namespace: str, workflow_id: str, task_id: str, parent_id: str
) -> None:
    """Let a task wait for another one; InvalidInput with CYCLE when the edge closes a circle."""

    async def change(tx: Transaction, row: WorkflowRow, now: Moment) -> None:
        draft = _draft(row)
        tasks = {task.id: task for task in draft.tasks}
        for path, name in (("taskId", task_id), ("dependsOnTaskId", parent_id)):
            if name not in tasks:
                text = f"no task of this workflow has the id {name!r}"
                raise InvalidInput([Problem(path=path, message=text, code="UNKNOWN_TASK")])
        if parent_id in tasks[task_id].depends_on:
            return
        tasks[task_id] = _replace(
            tasks[task_id], depends_on=(*tasks[task_id].depends_on, parent_id)
        )
        _refuse_cycle(tasks, task_id, parent_id)
        await _save(tx, row, Draft(tasks=tuple(tasks.values())), now)

    await _changed(store, namespace, workflow_id, change)


async def start(
    store: Store, bus: Bus, entropy: Entropy, namespace: str, workflow_id: str, by: str
) -> Started:
    """Make a release of the draft, and a run of it; InvalidInput with EMPTY without any task."""
    run_id = entropy.run_id()

    async def change(tx: Transaction, row: WorkflowRow, now: Moment) -> Hint:
        if row.run_id == run_id:
            return Hint()  # an earlier try was committed, its reply lost
        workflow = definition_of(row, _draft(row))
        request = StartRequest(workflow=workflow, namespace=namespace)
        one = _replace(prepare(request, entropy, ShapeCache()), run_id=run_id)
        await tx.definitions.save(_replace(row, run_id=run_id, changed_at=now))
        await release(tx, _replace(row, run_id=run_id), workflow, by, now)
        return (await write_starts(tx, [one], now, again=False)).hint

    await bus.send_hint(await _changed(store, namespace, workflow_id, change))
    return Started(run_id, True)


def definition_of(row: WorkflowRow, draft: Draft) -> Workflow:
    """A draft as a workflow; InvalidInput when it holds no task."""
    if not draft.tasks:
        text = "has no tasks yet: add one before it is started"
        raise InvalidInput([Problem(path="tasks", message=text, code="EMPTY")])
    names = slugs(task.name for task in draft.tasks)
    ids = {task.id: names[place] for place, task in enumerate(draft.tasks)}
    specs = tuple(
        TaskSpec(
            id=ids[task.id],
            title="" if ids[task.id] == task.name else task.name,
            executor=task.type,
            inputs={PAYLOAD: Source(const=task.payload)},
            depends_on=tuple(ids[parent] for parent in task.depends_on),
            retry=RetryPolicy(max_retries=task.max_retries),
        )
        for task in draft.tasks
    )
    return Workflow(name=row.name, title=row.title, tasks=specs)


async def _changed(
    store: Store,
    namespace: str,
    workflow_id: str,
    change: Callable[[Transaction, WorkflowRow, Moment], Awaitable[T]],
) -> T:
    async def once() -> T:
        async with store.transaction() as tx:
            row = await tx.definitions.lock_id(namespace, workflow_id)
            if row is None or row.deleted_at is not None or row.draft is None:
                raise NotFound(f"there is no workflow with the id {workflow_id!r}")
            return await change(tx, row, await tx.now())

    return await retrying(once)


async def _save(tx: Transaction, row: WorkflowRow, draft: Draft, now: Moment) -> None:
    data = _encode(draft)
    if len(draft.tasks) > DRAFT_TASKS_MAX or len(data) > DRAFT_BYTES_MAX:
        text = (
            f"would have {len(draft.tasks):,} tasks and {len(data):,} bytes as JSON, at most"
            f" {DRAFT_TASKS_MAX:,} and {DRAFT_BYTES_MAX:,} are allowed: deploy a definition instead"
        )
        raise InvalidInput([Problem(path="tasks", message=text, code="TOO_LARGE")])
    await tx.definitions.save(_replace(row, draft=data, changed_at=now))


def _refuse_cycle(tasks: dict[str, DraftTask], task_id: str, parent_id: str) -> None:
    names = {task.id: task.name for task in tasks.values()}
    if task_id == parent_id:
        text = f"task {names[task_id]!r} would wait for itself"
        raise InvalidInput([Problem(path="dependsOnTaskId", message=text, code="CYCLE")])
    for cycle in find_cycles({task.id: task.depends_on for task in tasks.values()}):
        told = " → ".join(names[name] for name in (*cycle.tasks, cycle.tasks[0])[:12])
        text = f"tasks would wait in a circle, each for the next one: {told}"
        raise InvalidInput([Problem(path="dependsOnTaskId", message=text, code="CYCLE")])


def _draft(row: WorkflowRow) -> Draft:
    return msgspec.json.decode(row.draft or b"{}", type=Draft)


def _encode(draft: Draft) -> bytes:
    return msgspec.json.encode(draft)
