"""Workflows put together step by step, on every store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import InvalidInput, NotFound, TidemillError
from tidemill.engine import drafts
from tidemill.engine.drafts import DraftTask, TaskPlan
from tidemill.ports.queries import WorkflowQuery
from tidemill.ports.store import Store
from tidemill.runtime.system import SystemEntropy

TYPES = ("compute", "default")


async def a_draft(store: Store, title: str = "Data pipeline") -> str:
    return (await drafts.create(store, SystemEntropy(), "default", title)).id


async def a_task(store: Store, draft: str, name: str, **fields: Any) -> str:
    wish = TaskPlan(**{"name": name, "type": "compute"} | fields)
    return (await drafts.add_task(store, SystemEntropy(), "default", draft, wish, TYPES)).id


async def an_edge(store: Store, draft: str, child: str, parent: str) -> None:
    await drafts.add_dependency(store, "default", draft, child, parent)


async def started(store: Store, draft: str) -> str:
    return (await drafts.start(store, MemoryBus(), SystemEntropy(), "default", draft, "me")).run_id


async def tasks_of(store: Store, draft: str) -> tuple[DraftTask, ...]:
    return (await drafts.read(store, "default", draft))[1].tasks


async def test_drafts_of_one_title_are_told_apart_by_id_and_name(store: Store) -> None:
    ids = [await a_draft(store) for _ in range(3)]

    rows = [(await drafts.read(store, "default", one))[0] for one in ids]

    assert {row.title for row in rows} == {"Data pipeline"}
    assert rows[0].name == "Data-pipeline"
    assert len({row.id for row in rows}) == len({row.name for row in rows}) == 3


async def test_a_draft_is_no_workflow_before_it_is_started(store: Store) -> None:
    draft = await a_draft(store)
    await a_task(store, draft, "a")
    query = WorkflowQuery(namespace="default")
    before = await store.reader.workflows(query)

    await started(store, draft)

    assert before == []
    (row,) = await store.reader.workflows(query)
    assert (row.id, row.number) == (draft, 1)


async def test_starting_a_draft_runs_its_tasks_in_order(store: Store) -> None:
    draft = await a_draft(store)
    one = await a_task(store, draft, "Fetch order", payload={"x": 1}, max_retries=0)
    two = await a_task(store, draft, "fetch order")
    await an_edge(store, draft, two, one)

    run_id = await started(store, draft)

    row, _ = await drafts.read(store, "default", draft)
    assert row.run_id == run_id
    run = await store.reader.run("default", row.run_id)
    assert (run.workflow, run.open) == ("Data-pipeline", 2)
    states = [task.state for task in await store.reader.tasks("default", row.run_id, -1, 9)]
    assert states == ["READY", "PENDING"]
    (version,) = await store.payloads.versions([run.version_id])
    assert b'"title":"Fetch order"' in version.spec
    assert b'"max_retries":0' in version.spec


async def test_a_draft_may_be_started_again_and_grow_in_between(store: Store) -> None:
    draft = await a_draft(store)
    await a_task(store, draft, "a")
    runs = [await started(store, draft), await started(store, draft)]
    await a_task(store, draft, "b")
    runs.append(await started(store, draft))

    row, _ = await drafts.read(store, "default", draft)

    assert len(set(runs)) == 3
    assert (row.number, row.run_id) == (2, runs[-1])


async def test_an_empty_draft_cannot_be_started(store: Store) -> None:
    draft = await a_draft(store)

    with pytest.raises(InvalidInput) as error:
        await started(store, draft)

    assert [problem.code for problem in error.value.problems] == ["EMPTY"]


async def test_an_edge_that_closes_a_circle_is_refused_and_named(store: Store) -> None:
    draft = await a_draft(store)
    a, b, c = [await a_task(store, draft, name) for name in "abc"]
    await an_edge(store, draft, b, a)
    await an_edge(store, draft, c, b)

    for child, parent, told in ((a, c, "a → c → b → a"), (a, a, "itself")):
        with pytest.raises(InvalidInput, match=told) as error:
            await an_edge(store, draft, child, parent)
        assert error.value.problems[0].code == "CYCLE"

    assert [task.depends_on for task in await tasks_of(store, draft)] == [(), (a,), (b,)]


async def test_two_edges_at_once_do_not_close_a_circle_together(store: Store) -> None:
    draft = await a_draft(store)
    a, b = [await a_task(store, draft, name) for name in "ab"]

    told = await asyncio.gather(
        an_edge(store, draft, a, b), an_edge(store, draft, b, a), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in told) == ["InvalidInput", "NoneType"]


async def test_tasks_added_at_once_are_all_there(store: Store) -> None:
    draft = await a_draft(store)

    ids = await asyncio.gather(*(a_task(store, draft, f"t{place}") for place in range(10)))

    assert {task.id for task in await tasks_of(store, draft)} == set(ids)


async def test_an_edge_that_is_there_already_changes_nothing(store: Store) -> None:
    draft = await a_draft(store)
    a, b = [await a_task(store, draft, name) for name in "ab"]

    await an_edge(store, draft, b, a)
    await an_edge(store, draft, b, a)

    assert (await tasks_of(store, draft))[1].depends_on == (a,)


async def test_what_is_not_there_is_said(store: Store) -> None:
    draft = await a_draft(store)
    a = await a_task(store, draft, "a")

    for child, parent, path in (("none", a, "taskId"), (a, "none", "dependsOnTaskId")):
        with pytest.raises(InvalidInput) as error:
            await an_edge(store, draft, child, parent)
        assert [(one.code, one.path) for one in error.value.problems] == [("UNKNOWN_TASK", path)]
    with pytest.raises(NotFound):
        await a_task(store, "none", "a")


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (TaskPlan(name="a", type="x"), "UNKNOWN_TYPE"),
        (TaskPlan(name="", type="compute"), "BAD_NAME"),
        (TaskPlan(name="a", type="compute", max_retries=-1), "OUT_OF_RANGE"),
        (TaskPlan(name="a", type="compute", payload="x" * 2_000_000), "TOO_LARGE"),
    ],
)
async def test_a_task_that_cannot_be_is_refused(store: Store, wish: TaskPlan, code: str) -> None:
    draft = await a_draft(store)

    with pytest.raises(InvalidInput) as error:
        await drafts.add_task(store, SystemEntropy(), "default", draft, wish, TYPES)

    assert [problem.code for problem in error.value.problems] == [code]
    assert await tasks_of(store, draft) == ()


@pytest.mark.parametrize("title", ["", "x" * 257, "a\nb"])
async def test_a_title_must_be_text(store: Store, title: str) -> None:
    with pytest.raises(TidemillError, match="name"):
        await a_draft(store, title)
