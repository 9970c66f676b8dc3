"""Workflows and their versions over HTTP."""

from __future__ import annotations

import httpx
import pytest

from tests.api.crew import a_definition, at_work
from tests.api.stage import client_of
from tidemill.api.app import build_app
from tidemill.api.security import Security
from tidemill.api.services import Services


@pytest.fixture(params=["services", "postgres_services"])
def each(request: pytest.FixtureRequest) -> Services:
    """Services over each store."""
    chosen: Services = request.getfixturevalue(request.param)
    return chosen


def client_for(services: Services) -> httpx.AsyncClient:
    """A client of an application over these services."""
    return client_of(build_app(services, Security()))


async def test_a_deployed_workflow_is_started_by_its_name(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        deployed = await client.post("/v1/workflows", json=a_definition(title="Orders of today"))
        started = (await client.post("/v1/runs", json={"workflow": "orders"})).json()

        run = (await client.get(f"/v1/runs/{started['id']}/wait?timeout=20")).json()

    assert deployed.status_code == 201
    assert deployed.headers["location"] == "/v1/workflows/orders"
    assert (run["version"], run["title"], run["state"]) == (1, "Orders of today", "SUCCEEDED")


async def test_the_same_content_makes_no_new_version(each: Services) -> None:
    async with client_for(each) as client:
        first = await client.post("/v1/workflows", json=a_definition())
        same = await client.put("/v1/workflows/orders", json=a_definition())
        other = await client.put("/v1/workflows/orders", json=a_definition(description="new"))
        versions = (await client.get("/v1/workflows/orders/versions")).json()["items"]

    assert [answer.status_code for answer in (first, same, other)] == [201, 200, 201]
    assert [version["number"] for version in versions] == [2, 1]


async def test_an_old_version_can_be_shown_and_started(services: Services) -> None:
    async with client_for(services) as client:
        await client.post("/v1/workflows", json=a_definition(description="old"))
        await client.post("/v1/workflows", json=a_definition(description="new"))

        version = await client.get("/v1/workflows/orders/versions/1")
        started = await client.post("/v1/runs", json={"workflow": "orders", "version": 1})
        run = (await client.get(f"/v1/runs/{started.json()['id']}")).json()

    assert version.json()["definition"]["description"] == "old"
    assert run["version_id"] == version.json()["version_id"]
    assert run["version"] == 1


async def test_workflows_are_listed_by_name(each: Services) -> None:
    async with client_for(each) as client:
        for name in ("bills", "orders", "alarms"):
            await client.post("/v1/workflows", json=a_definition(name))

        page = (await client.get("/v1/workflows", params={"limit": 2})).json()
        rest = (await client.get("/v1/workflows", params={"after": page["next"]})).json()
        found = (await client.get("/v1/workflows", params={"text": "ILL"})).json()

    assert [one["name"] for one in page["items"]] == ["alarms", "bills"]
    assert [one["name"] for one in rest["items"]] == ["orders"]
    assert [one["name"] for one in found["items"]] == ["bills"]


async def test_a_list_tells_how_many_tasks_each_has_without_their_definitions(
    services: Services,
) -> None:
    definition = a_definition(description="what is sold")
    async with client_for(services) as client:
        await client.post("/v1/workflows", json=definition)

        [listed] = (await client.get("/v1/workflows")).json()["items"]

    assert (listed["tasks"], listed["description"]) == (len(definition["tasks"]), "what is sold")
    assert listed["definition"] is None


async def test_a_change_is_refused_when_somebody_was_faster(each: Services) -> None:
    async with client_for(each) as client:
        await client.post("/v1/workflows", json=a_definition())
        seen = (await client.get("/v1/workflows/orders")).headers["etag"]
        await client.post("/v1/workflows", json=a_definition(description="mine"))

        late = await client.put(
            "/v1/workflows/orders", json=a_definition(), headers={"If-Match": seen}
        )
        gone = await client.delete("/v1/workflows/orders", headers={"If-Match": seen})
        missing = await client.put(
            "/v1/workflows/bills", json=a_definition("bills"), headers={"If-Match": seen}
        )

    assert [one.status_code for one in (late, gone, missing)] == [412, 412, 412]
    assert late.json()["code"] == "PRECONDITION_FAILED"


async def test_a_removed_workflow_cannot_be_started(each: Services) -> None:
    async with client_for(each) as client:
        await client.post("/v1/workflows", json=a_definition())
        removed = await client.delete("/v1/workflows/orders")

        start = await client.post("/v1/runs", json={"workflow": "orders"})
        again = await client.delete("/v1/workflows/orders")
        listed = (await client.get("/v1/workflows")).json()

    assert (removed.status_code, start.status_code, again.status_code) == (204, 404, 404)
    assert listed["items"] == []


async def test_a_definition_that_has_not_changed_is_not_sent_again(services: Services) -> None:
    async with client_for(services) as client:
        await client.post("/v1/workflows", json=a_definition())
        tag = (await client.get("/v1/workflows/orders")).headers["etag"]

        same = await client.get("/v1/workflows/orders", headers={"If-None-Match": tag})

    assert same.status_code == 304


async def test_validation_stores_nothing(services: Services) -> None:
    async with client_for(services) as client:
        answer = (await client.post("/v1/workflows:validate", json=a_definition())).json()

        stored = await client.get("/v1/workflows/orders")

    assert (answer["name"], answer["tasks"]) == ("orders", 2)
    assert stored.status_code == 404


async def test_nothing_of_another_namespace_is_there(services: Services) -> None:
    async with client_for(services) as client:
        await client.post("/v1/workflows", json=a_definition())
        elsewhere = {"Tidemill-Namespace": "other"}

        answers = [
            await client.get(f"/v1/workflows/orders{path}", headers=elsewhere)
            for path in ("", "/versions", "/versions/1")
        ]
        removed = await client.delete("/v1/workflows/orders", headers=elsewhere)

    assert {answer.status_code for answer in (*answers, removed)} == {404}
