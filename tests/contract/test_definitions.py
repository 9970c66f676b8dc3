"""Deploying and removing workflows, on every store."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tidemill.domain.errors import Conflict, NotFound
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine.definitions import Deployed, deploy, remove, workflow_of
from tidemill.engine.plans import Plans
from tidemill.ports.queries import WorkflowQuery
from tidemill.ports.rows import WorkflowRow
from tidemill.ports.store import Store
from tidemill.runtime.system import SystemEntropy

NUMBER_MAX = 2**31 - 1


def a_workflow(name: str = "orders", executor: str = "noop", **fields: object) -> Workflow:
    task = TaskSpec(id="a", executor=executor)
    return msgspec.structs.replace(Workflow(name=name, tasks=(task,)), **fields)


async def deployed(store: Store, workflow: Workflow, namespace: str = "default") -> Deployed:
    return await deploy(store, SystemEntropy(), namespace, workflow, "me")


async def test_new_content_gets_the_next_number_and_the_same_content_none(store: Store) -> None:
    first = await deployed(store, a_workflow())
    again = await deployed(store, a_workflow())
    second = await deployed(store, a_workflow(executor="sleep", title="Orders!"))

    assert [(one.number, one.created) for one in (first, again, second)] == [
        *((1, True), (1, False), (2, True)),
    ]
    row = await store.reader.workflow("default", "orders")
    assert (row.number, row.version_id, row.title) == (2, second.version_id, "Orders!")
    assert row.id == first.id == second.id


async def test_going_back_to_earlier_content_is_a_release_too(store: Store) -> None:
    await deployed(store, a_workflow())
    await deployed(store, a_workflow(executor="sleep"))

    assert (await deployed(store, a_workflow())).number == 3


async def test_releases_are_listed_newest_first_page_by_page(store: Store) -> None:
    for executor in ("noop", "sleep", "shell"):
        await deployed(store, a_workflow(executor=executor))

    page = await store.reader.releases("default", "orders", NUMBER_MAX, 2)
    rest = await store.reader.releases("default", "orders", page[-1].number, 2)

    assert [one.number for one in page + rest] == [3, 2, 1]
    assert {one.created_by for one in page} == {"me"}
    assert await store.reader.release("default", "orders", 1) == rest[0]
    with pytest.raises(NotFound, match="version 4"):
        await store.reader.release("default", "orders", 4)


async def test_what_to_start_is_the_latest_release_or_the_one_named(store: Store) -> None:
    plans = Plans()
    one, other = a_workflow(), a_workflow(executor="sleep")
    await deployed(store, one)
    await deployed(store, other)

    latest = await workflow_of(store, plans, "default", "orders")

    assert latest == other
    assert await workflow_of(store, plans, "default", "orders") is latest
    assert await workflow_of(store, plans, "default", "orders", 1) == one
    for name, number in (("none", None), ("orders", 9)):
        with pytest.raises(NotFound):
            await workflow_of(store, plans, "default", name, number)


async def test_a_workflow_that_was_removed_is_gone_until_it_is_deployed_again(store: Store) -> None:
    await deployed(store, a_workflow())

    await remove(store, "default", "orders")

    for look in (remove(store, "default", "orders"), store.reader.workflow("default", "orders")):
        with pytest.raises(NotFound):
            await look
    assert await store.reader.workflows(WorkflowQuery(namespace="default")) == []
    with pytest.raises(NotFound):
        await workflow_of(store, Plans(), "default", "orders", 1)
    assert (await deployed(store, a_workflow())).number == 1
    assert (await deployed(store, a_workflow(executor="sleep"))).number == 2


async def test_a_check_sees_what_is_there_under_the_lock(store: Store) -> None:
    seen: list[WorkflowRow | None] = []

    def refuse(row: WorkflowRow | None) -> None:
        seen.append(row)
        raise Conflict("changed meanwhile")

    with pytest.raises(Conflict):
        await deploy(store, SystemEntropy(), "default", a_workflow(), "me", refuse)
    await deployed(store, a_workflow())
    with pytest.raises(Conflict):
        await deploy(store, SystemEntropy(), "default", a_workflow(executor="a"), "me", refuse)
    with pytest.raises(Conflict):
        await remove(store, "default", "orders", refuse)

    row = await store.reader.workflow("default", "orders")
    assert seen == [None, row, row]
    assert row.number == 1


async def test_of_many_who_deploy_at_once_each_gets_a_number_of_its_own(store: Store) -> None:
    workflows = [a_workflow(executor=f"e{place}") for place in range(8)]

    done = await asyncio.gather(*(deployed(store, each) for each in workflows))

    assert sorted(one.number for one in done) == list(range(1, 9))
    assert len({one.id for one in done}) == 1


async def test_workflows_are_listed_by_name_text_and_label(store: Store) -> None:
    for name, title, team in (("b", "Über", "red"), ("a", "", "blue"), ("C", "x", "blue")):
        await deployed(store, a_workflow(name, title=title, labels={"team": team}))
    await deployed(store, a_workflow("z"), "other")

    async def names(**conditions: object) -> list[str]:
        query = WorkflowQuery(namespace="default", **conditions)  # type: ignore[arg-type]
        return [row.name for row in await store.reader.workflows(query)]

    assert await names() == ["C", "a", "b"]
    assert await names(limit=2) == ["C", "a"]
    assert await names(after="a") == ["b"]
    assert await names(label=("team", "blue")) == ["C", "a"]
    assert await names(text="BER") == ["b"]
    assert await names(text="c") == ["C"]
    assert await names(text="%") == []


async def test_two_namespaces_have_workflows_of_their_own(store: Store) -> None:
    here = await deployed(store, a_workflow())
    there = await deployed(store, a_workflow(), "other")

    assert (here.number, there.number) == (1, 1)
    assert here.id != there.id
    assert here.version_id != there.version_id
