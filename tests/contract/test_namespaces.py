"""What is of another namespace is not there, whichever verb asks."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import pytest

from tests.builders import NOON, a_run, a_session, a_start_key, a_task
from tests.contract.given import given, now_of
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import SECOND, RunId, TaskKey, VersionId
from tidemill.domain.run import RunKind, RunState
from tidemill.domain.task_run import Attempt, Reason, TaskState
from tidemill.engine import controls, dead_letters, definitions, drafts
from tidemill.ports.queries import DeadQuery, JobQuery, RunQuery, WorkflowQuery
from tidemill.ports.reading import Reader
from tidemill.ports.rows import LogChunk, Release, WorkflowRow
from tidemill.ports.store import Store
from tidemill.runtime.system import SystemEntropy

KEY = TaskKey(RunId("01980000-0000-7000-8000-0000000000aa"), 0)
WORKFLOW_ID = "01980000-0000-7000-8000-0000000000bb"


async def something_of_everything(store: Store, namespace: str) -> None:
    now = await now_of(store)
    fields = {"id": KEY.run_id, "kind": RunKind.JOB, "key": "k", "labels": {"team": "blue"}}
    run = a_run(namespace=namespace, state=RunState.FAILED, **fields)
    task = a_task(run_id=KEY.run_id, namespace=namespace, state=TaskState.FAILED)
    waiting = a_task(run_id=KEY.run_id, position=1, namespace=namespace)
    await given(store, run, task, waiting, a_session(namespace=namespace, expires_at=now + SECOND))
    key = a_start_key(namespace=namespace, kind="job", key="k", run_id=KEY.run_id)
    async with store.transaction() as tx:
        await tx.starts.take_keys([key])
        await tx.history.add_attempts([an_attempt()])
        await tx.history.add_logs([LogChunk(task.token, "hello")], 100)
        await tx.definitions.add(a_workflow(namespace))
        await tx.definitions.add_release(a_release(namespace))


def an_attempt() -> Attempt:
    return Attempt(
        run_id=KEY.run_id,
        position=KEY.position,
        epoch=0,
        attempt=1,
        reason=Reason.FAILED,
        session_id=None,
        started_at=None,
        ended_at=NOON,
    )


def a_workflow(namespace: str) -> WorkflowRow:
    return WorkflowRow(
        id=WORKFLOW_ID,
        namespace=namespace,
        name="orders",
        number=1,
        draft=b"{}",
        version_id=VersionId("v1"),
        created_at=NOON,
        changed_at=NOON,
    )


def a_release(namespace: str) -> Release:
    return Release(
        namespace=namespace,
        name="orders",
        number=1,
        version_id=VersionId("v1"),
        created_at=NOON,
        created_by="me",
    )


VERBS: dict[str, Callable[[Reader, str], Awaitable[object]]] = {
    "run": lambda reader, namespace: reader.run(namespace, KEY.run_id),
    "find_runs": lambda reader, namespace: reader.find_runs(namespace, KEY.run_id, 10),
    "find_by_key": lambda reader, namespace: reader.find_by_key(namespace, RunKind.JOB, "k"),
    "runs": lambda reader, namespace: reader.runs(RunQuery(namespace=namespace)),
    "tasks": lambda reader, namespace: reader.tasks(namespace, KEY.run_id, -1, 10),
    "task": lambda reader, namespace: reader.task(namespace, KEY),
    "attempts": lambda reader, namespace: reader.attempts(namespace, KEY),
    "logs": lambda reader, namespace: reader.logs(namespace, KEY),
    "jobs": lambda reader, namespace: reader.jobs(JobQuery(namespace=namespace)),
    "job": lambda reader, namespace: reader.job(namespace, KEY.run_id),
    "dead_letters": lambda reader, namespace: reader.dead_letters(DeadQuery(namespace=namespace)),
    "dead_groups": lambda reader, namespace: reader.dead_groups(namespace),
    "sessions": lambda reader, namespace: reader.sessions(namespace),
    "workers": lambda reader, namespace: reader.workers(namespace),
    "queues": lambda reader, namespace: reader.queues(namespace),
    "workflow": lambda reader, namespace: reader.workflow(namespace, "orders"),
    "workflow_by_id": lambda reader, namespace: reader.workflow_by_id(namespace, WORKFLOW_ID),
    "workflows": lambda reader, namespace: reader.workflows(WorkflowQuery(namespace=namespace)),
    "release": lambda reader, namespace: reader.release(namespace, "orders", 1),
    "releases": lambda reader, namespace: reader.releases(namespace, "orders", 9, 10),
}
OF_ALL = {"events_after", "events_head", "events_floor"}


def test_every_verb_is_asked() -> None:
    verbs = {name for name in dir(Reader) if not name.startswith("_")}

    assert verbs == VERBS.keys() | OF_ALL | {"counts"}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_tells_of_its_own_namespace_only(store: Store, verb: str) -> None:
    await something_of_everything(store, "blue")

    assert await VERBS[verb](store.reader, "blue")
    with contextlib.suppress(NotFound):
        assert not await VERBS[verb](store.reader, "red")


async def test_counts_are_those_of_the_namespace(store: Store) -> None:
    await something_of_everything(store, "blue")

    blue, red = await store.reader.counts("blue"), await store.reader.counts("red")

    assert (blue.dead_letters, blue.ready, blue.workers, blue.slots) == (1, 1, 1, 4)
    assert (red.dead_letters, red.ready, red.workers, red.slots) == (0, 0, 0, 0)


CHANGES: dict[str, Callable[[Store, MemoryBus], Awaitable[object]]] = {
    "cancel": lambda store, bus: controls.cancel(store, bus, "red", KEY.run_id),
    "pause": lambda store, bus: controls.pause(store, bus, "red", KEY.run_id),
    "resume": lambda store, bus: controls.resume(store, bus, "red", KEY.run_id),
    "discard": lambda store, _: dead_letters.discard(store, "red", KEY),
    "remove": lambda store, _: definitions.remove(store, "red", "orders"),
    "add_dependency": lambda store, _: drafts.add_dependency(store, "red", WORKFLOW_ID, "a", "b"),
    "start_draft": lambda store, bus: drafts.start(
        store, bus, SystemEntropy(), "red", WORKFLOW_ID, "me"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_nothing_of_another_namespace_can_be_changed(store: Store, change: str) -> None:
    await something_of_everything(store, "blue")

    with pytest.raises(NotFound):
        await CHANGES[change](store, MemoryBus())
