"""The contract of Reader."""

from __future__ import annotations

import pytest

from tests.builders import a_run, a_run_id, a_session, a_task
from tests.contract.given import given, now_of
from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import SECOND, RunId, TaskKey
from tidemill.domain.run import RunState
from tidemill.domain.task_run import TaskState
from tidemill.ports.queries import DeadQuery, RunQuery
from tidemill.ports.store import Store


@pytest.mark.parametrize("name", [a_run_id(), "orders"])
async def test_a_run_that_is_not_there_is_not_found(store: Store, name: str) -> None:
    with pytest.raises(NotFound, match=name):
        await store.reader.run("default", RunId(name))


async def test_what_is_no_run_id_has_no_tasks(store: Store) -> None:
    assert await store.reader.tasks("default", RunId("orders"), -1, 10) == []
    assert await store.reader.logs("default", TaskKey(RunId("orders"), 0)) == {}
    assert await store.reader.attempts("default", TaskKey(RunId("orders"), 0)) == []


async def test_runs_are_found_by_the_beginning_or_the_end_of_their_id(store: Store) -> None:
    one, other = a_run(), a_run()
    await given(store, one, other)

    assert await store.reader.find_runs("default", one.id[-6:], 10) == [one.id]
    assert await store.reader.find_runs("default", one.id, 10) == [one.id]
    assert await store.reader.find_runs("default", one.id[:8], 10) == [other.id, one.id]
    assert await store.reader.find_runs("default", one.id[:8], 1) == [other.id]
    assert await store.reader.find_runs("default", "%", 10) == []


async def test_runs_are_listed_newest_first_page_by_page(store: Store) -> None:
    runs = [a_run() for _ in range(5)]
    await given(store, *runs, a_run(namespace="other"))

    first = await store.reader.runs(RunQuery(namespace="default", limit=2))
    rest = await store.reader.runs(RunQuery(namespace="default", after=first[-1].id))

    assert first + rest == runs[::-1]


async def test_runs_are_listed_by_state_and_workflow(store: Store) -> None:
    running, failed = a_run(), a_run(state=RunState.FAILED)
    invoices = a_run(workflow="invoices")
    await given(store, running, failed, invoices)

    states = (RunState.FAILED, RunState.CANCELLED)
    assert await store.reader.runs(RunQuery(namespace="default", states=states)) == [failed]
    assert await store.reader.runs(RunQuery(namespace="default", workflow="invoices")) == [invoices]


async def test_tasks_are_listed_page_by_page(store: Store) -> None:
    run_id = a_run_id()
    tasks = [a_task(run_id=run_id, position=place) for place in range(5)]
    await given(store, *tasks)

    assert await store.reader.tasks("default", run_id, -1, 2) == tasks[:2]
    assert await store.reader.tasks("default", run_id, 1, 10) == tasks[2:]


async def test_dead_letters_are_listed_newest_run_first_in_order_of_position(store: Store) -> None:
    old, new = a_run_id(), a_run_id()
    keys = [(new, 0), (new, 1), (old, 3), (old, 10)]
    dead = [a_task(run_id=run, position=place, state=TaskState.FAILED) for run, place in keys]
    await given(store, *dead, a_task(state=TaskState.SUCCEEDED), a_task(run_id=new, position=9))

    assert await store.reader.dead_letters(DeadQuery(namespace="default")) == dead
    assert await store.reader.dead_letters(DeadQuery(namespace="default", limit=1)) == dead[:1]
    for place, task in enumerate(dead):
        later = await store.reader.dead_letters(DeadQuery(namespace="default", after=task.key))
        assert later == dead[place + 1 :]
    assert await store.reader.dead_letters(DeadQuery(namespace="default", run_id=old)) == dead[2:]
    assert await store.reader.dead_letters(DeadQuery(namespace="other")) == []


async def test_only_live_sessions_are_listed(store: Store) -> None:
    now = await now_of(store)
    live = a_session(expires_at=now + 60 * SECOND)
    closed = a_session(expires_at=now + 60 * SECOND, closed_at=now)
    await given(store, live, closed, a_session(expires_at=now - SECOND))

    assert await store.reader.sessions("default") == [live]
