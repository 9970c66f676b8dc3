"""Dead letters, workers, queues and the overview over HTTP."""

from __future__ import annotations

import httpx
import pytest

from tests.api.crew import at_work, one_task
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


async def fail(client: httpx.AsyncClient, name: str = "single") -> str:
    """A run that has failed; its id."""
    body = {"definition": one_task("boom", name)}
    run_id: str = (await client.post("/v1/runs", json=body)).json()["id"]
    ended = (await client.get(f"/v1/runs/{run_id}/wait?timeout=20")).json()
    assert ended["state"] == "FAILED"
    return run_id


async def test_dead_letters_are_listed_and_grouped(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        ids = [await fail(client), await fail(client), await fail(client, "other")]

        page = (await client.get("/v1/dead-letters", params={"limit": 2})).json()
        rest = (await client.get("/v1/dead-letters", params={"after": page["next"]})).json()
        groups = (await client.get("/v1/dead-letters/groups")).json()["items"]
        alike = await client.get(
            "/v1/dead-letters", params={"workflow": "single", "group": groups[0]["group"]}
        )
        of_run = (await client.get("/v1/dead-letters", params={"run": ids[2]})).json()["items"]

    listed = [*page["items"], *rest["items"]]
    assert [letter["run_id"] for letter in listed] == ids[::-1]
    assert listed[0]["error"]["message"] == "it broke"
    assert [(one["workflow"], one["count"], one["task"]) for one in groups] == [
        ("single", 2, "only"),
        ("other", 1, "only"),
    ]
    assert [letter["run_id"] for letter in alike.json()["items"]] == [ids[1], ids[0]]
    assert [letter["workflow"] for letter in of_run] == ["other"]


async def test_a_dead_letter_is_replayed(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        run_id = await fail(client)

        answer = await client.post(f"/v1/dead-letters/{run_id}/only/replay")
        await client.get(f"/v1/runs/{run_id}/wait?timeout=20")
        task = (await client.get(f"/v1/runs/{run_id}/tasks/only")).json()

    assert answer.json()["generation"] == 2
    assert len(task["attempts"]) == 2


async def test_a_discarded_dead_letter_is_no_longer_listed(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        run_id = await fail(client)

        answer = await client.post(f"/v1/dead-letters/{run_id}/only/discard")
        listed = (await client.get("/v1/dead-letters")).json()
        run = (await client.get(f"/v1/runs/{run_id}")).json()

    assert (answer.status_code, listed["items"], run["state"]) == (204, [], "FAILED")


async def test_many_dead_letters_are_replayed_at_a_rate(services: Services) -> None:
    async with client_for(services) as client, at_work(services):
        for _ in range(3):
            await fail(client)

        done = (
            await client.post("/v1/dead-letters:replay", json={"all": True, "rate": 100})
        ).json()
        none = await client.post("/v1/dead-letters:replay", json={"workflow": "nothing"})

    assert (done["replayed"], done["failed"]) == (3, 0)
    assert none.json() == {"replayed": 0, "failed": 0, "more": False}


async def test_all_dead_letters_are_replayed_only_when_that_is_said(services: Services) -> None:
    async with client_for(services) as client, at_work(services):
        run_id = await fail(client)

        answer = await client.post("/v1/dead-letters:replay", json={"rate": 100})
        run = (await client.get(f"/v1/runs/{run_id}")).json()

    assert (answer.status_code, answer.json()["code"]) == (400, "NO_FILTER")
    assert answer.json()["detail"] == (
        'all: give workflow or group, or `"all": true` to replay every dead letter'
    )
    assert run["generation"] == 1


async def test_a_task_that_has_not_failed_is_no_dead_letter(services: Services) -> None:
    async with client_for(services) as client:
        started = await client.post("/v1/runs", json={"definition": one_task("hold")})
        path = f"/v1/dead-letters/{started.json()['id']}/only"

        answers = [await client.post(f"{path}/{act}") for act in ("replay", "discard")]
        unknown = await client.post(f"{path[:-4]}nobody/replay")

    assert [answer.status_code for answer in answers] == [409, 409]
    assert (unknown.status_code, unknown.json()["detail"]) == (
        404,
        'workflow single has no task "nobody"',
    )


async def test_dead_letters_of_another_namespace_are_not_there(services: Services) -> None:
    elsewhere = {"Tidemill-Namespace": "other"}
    async with client_for(services) as client, at_work(services):
        run_id = await fail(client)

        listed = (await client.get("/v1/dead-letters", headers=elsewhere)).json()
        groups = (await client.get("/v1/dead-letters/groups", headers=elsewhere)).json()
        path = f"/v1/dead-letters/{run_id}/only"
        acts = [
            await client.post(f"{path}/{act}", headers=elsewhere) for act in ("replay", "discard")
        ]

    assert (listed["items"], groups["items"]) == ([], [])
    assert [act.status_code for act in acts] == [404, 404]


async def test_workers_and_queues_are_shown(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        run_id = (await client.post("/v1/runs", json={"definition": one_task("hold")})).json()["id"]
        body = {"definition": one_task("noop", queue="far")}
        await client.post("/v1/runs", json=body)
        while (await client.get(f"/v1/runs/{run_id}/tasks/only")).json()["task"]["worker"] is None:
            pass

        (worker,) = (await client.get("/v1/workers")).json()["items"]
        queues = (await client.get("/v1/queues")).json()["items"]
        overview = (await client.get("/v1/overview")).json()

    assert (worker["worker"], worker["slots"], worker["running"]) == ("ada", 10, 1)
    assert "hold" in worker["offers"]
    assert [(one["name"], one["ready"], one["running"], one["workers"]) for one in queues] == [
        ("default", 0, 1, 1),
        ("far", 1, 0, 0),
    ]
    assert (overview["open_runs"], overview["running"], overview["slots"]) == (2, 1, 10)
    assert [one["name"] for one in overview["queues"]] == ["default", "far"]
