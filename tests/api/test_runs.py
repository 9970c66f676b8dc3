"""Runs over HTTP: started, listed, shown, waited for, steered."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httpx
import pytest

from tests.api.crew import a_definition, at_work, one_task
from tests.api.stage import client_of
from tidemill.api.app import build_app
from tidemill.api.security import Security, SingleUser
from tidemill.api.services import Services
from tidemill.domain.identifiers import RunId
from tidemill.domain.permissions import Role
from tidemill.domain.principals import Principal
from tidemill.domain.run import RunState
from tidemill.ports.queries import RunQuery
from tidemill.ports.store import Payloads


@pytest.fixture(params=["services", "postgres_services"])
def each(request: pytest.FixtureRequest) -> Services:
    """Services over each store."""
    chosen: Services = request.getfixturevalue(request.param)
    return chosen


def client_for(services: Services) -> httpx.AsyncClient:
    """A client of an application over these services."""
    return client_of(build_app(services, Security()))


NOWHERE = cast(Payloads, None)
"""Asking it for anything is an error."""


async def start(client: httpx.AsyncClient, definition: dict[str, Any], **fields: Any) -> str:
    """Start a definition; the id of its run."""
    answer = await client.post("/v1/runs", json={"definition": definition, **fields})
    assert answer.status_code == 201, answer.text
    run_id: str = answer.json()["id"]
    return run_id


async def test_a_run_is_started_and_its_result_read(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        definition = a_definition(output="{pick: pick, ship: ship}")
        answer = await client.post("/v1/runs", json={"definition": definition})
        run_id = answer.json()["id"]

        ended = (await client.get(f"/v1/runs/{run_id}/wait", params={"timeout": 20})).json()
        result = (await client.get(f"/v1/runs/{run_id}/result")).json()
        (listed,) = (await client.get("/v1/runs")).json()["items"]

    assert answer.headers["location"] == f"/v1/runs/{run_id}"
    assert (ended["state"], ended["ended"]) == ("SUCCEEDED", True)
    assert ended["progress"] == listed["progress"] == {"total": 2, "ended": 2, "failed": 0}
    assert result["result"] == {"pick": 1, "ship": 2}


async def test_what_makes_the_output_is_not_counted(services: Services) -> None:
    async with client_for(services) as client:
        run_id = await start(client, a_definition(output="ship"))
        await start(client, a_definition("without"))

        shown = (await client.get(f"/v1/runs/{run_id}")).json()
        listed = [(await client.get("/v1/runs")).json()["items"] for _ in range(2)]

    assert shown["progress"] == {"total": 2, "ended": 0, "failed": 0}
    assert [[run["progress"]["total"] for run in page] for page in listed] == [[2, 2], [2, 2]]


async def test_which_definitions_have_an_output_is_read_once(services: Services) -> None:
    async with client_for(services) as client:
        await start(client, a_definition(output="ship"))
        await client.get("/v1/runs")

        runs = await services.store.reader.runs(RunQuery(namespace="default"))
        found = await services.outputs.among(NOWHERE, runs)

    assert found == {runs[0].version_id}


async def test_without_an_output_the_last_results_are_the_result(services: Services) -> None:
    async with client_for(services) as client, at_work(services):
        run_id = await start(client, a_definition())
        await client.get(f"/v1/runs/{run_id}/wait", params={"timeout": 20})

        result = (await client.get(f"/v1/runs/{run_id}/result")).json()

    assert result == {
        "id": run_id,
        "state": "SUCCEEDED",
        "ended": True,
        "result": {"ship": 2},
        "error": None,
    }


async def test_a_wait_ends_with_the_time_and_says_so(services: Services) -> None:
    async with client_for(services) as client:
        run_id = await start(client, a_definition())

        answer = await client.get(f"/v1/runs/{run_id}/wait", params={"timeout": 0.05})

    assert (answer.status_code, answer.json()["ended"]) == (200, False)


async def test_a_wait_works_without_a_notifier_and_health_says_so(services: Services) -> None:
    async with client_for(services) as client, at_work(services, relay=False):
        run_id = await start(client, a_definition())

        run = (await client.get(f"/v1/runs/{run_id}/wait", params={"timeout": 20})).json()

    assert run["ended"]
    assert services.following._unstamped_since is not None


async def test_a_thousand_wait_for_the_price_of_one(services: Services) -> None:
    async with client_for(services) as client, at_work(services) as crew:
        run_id = RunId(await start(client, one_task("hold")))
        waiting = asyncio.gather(
            *(services.endings.wait("default", run_id, 50) for _ in range(1_000))
        )
        await asyncio.sleep(0)
        looked_at = await services.endings.step()
        crew.released.set()

        runs = await waiting

    assert {run.state for run in runs} == {RunState.SUCCEEDED}
    assert looked_at <= 1


async def test_a_failed_run_says_why(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        run_id = await start(client, one_task("boom"))

        run = (await client.get(f"/v1/runs/{run_id}/wait", params={"timeout": 20})).json()
        task = (await client.get(f"/v1/runs/{run_id}/tasks/only")).json()

    assert (run["state"], run["reason"]) == ("FAILED", "task_failed")
    assert run["error"] == "only: Boom: it broke"
    assert task["task"]["error"]["traceback"] == "line 1"
    assert [one["reason"] for one in task["attempts"]] == ["final_error"]


async def test_a_run_is_shown_alike_by_whoever_answers(services: Services) -> None:
    async with client_for(services) as client, at_work(services):
        run_id = await start(client, one_task("boom"))
        waited = (await client.get(f"/v1/runs/{run_id}/wait", params={"timeout": 20})).json()

        cancelled = (await client.post(f"/v1/runs/{run_id}/cancel")).json()

    assert waited["error"] == "only: Boom: it broke"
    assert cancelled == waited


async def test_runs_are_listed_page_by_page(each: Services) -> None:
    async with client_for(each) as client:
        ids = [await start(client, a_definition()) for _ in range(5)]

        first = (await client.get("/v1/runs", params={"limit": 2})).json()
        second = await client.get("/v1/runs", params={"limit": 2, "after": first["next"]})
        third = await client.get("/v1/runs", params={"limit": 2, "after": second.json()["next"]})

    pages = [first, second.json(), third.json()]
    assert [run["id"] for page in pages for run in page["items"]] == ids[::-1]
    assert third.json()["next"] is None


async def test_runs_are_found_by_what_is_known_of_them(each: Services) -> None:
    async with client_for(each) as client:
        run_id = await start(client, a_definition(), key="order-17", labels={"team": "blue"})
        await start(client, a_definition("bills"))
        conditions: list[dict[str, str | list[str]]] = [
            {"workflow": "orders"},
            {"label": "team=blue"},
            {"text": "ORDER-1"},
            {"state": ["RUNNING", "PAUSED"], "workflow": "orders"},
            {"kind": "run", "text": run_id[-12:]},
            {"created_after": "2020-01-01T00:00:00Z", "workflow": "orders", "sort": "created"},
        ]

        found = [(await client.get("/v1/runs", params=one)).json()["items"] for one in conditions]
        none = (
            await client.get("/v1/runs", params={"created_before": "2020-01-01T00:00:00Z"})
        ).json()

    assert [[run["id"] for run in runs] for runs in found] == [[run_id]] * len(conditions)
    assert none == {"items": [], "next": None}


async def test_a_run_shows_input_and_waits_when_asked(services: Services) -> None:
    async with client_for(services) as client:
        run_id = await start(client, a_definition(), input={"customer": "Ada"})

        plain = (await client.get(f"/v1/runs/{run_id}")).json()
        full = await client.get(f"/v1/runs/{run_id}?include=input&include=waits&include=result")

    assert {"input", "waits", "result"} & plain.keys() == set()
    assert full.json()["input"] == {"customer": "Ada"}
    assert full.json()["waits"] == [
        {"task": "pick", "code": "WORKERS", "message": "no worker is connected"}
    ]
    assert full.json()["result"] is None


async def test_a_run_that_has_not_changed_is_not_sent_again(services: Services) -> None:
    async with client_for(services) as client:
        run_id = await start(client, a_definition())
        tag = (await client.get(f"/v1/runs/{run_id}")).headers["etag"]

        same = await client.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})
        await client.post(f"/v1/runs/{run_id}/cancel")
        changed = await client.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})

    assert (same.status_code, same.content) == (304, b"")
    assert changed.status_code == 200


async def test_tasks_are_listed_with_what_they_wait_for(services: Services) -> None:
    async with client_for(services) as client:
        run_id = await start(client, a_definition(output="ship"))

        page = (await client.get(f"/v1/runs/{run_id}/tasks", params={"limit": 1})).json()
        rest = await client.get(f"/v1/runs/{run_id}/tasks", params={"after": page["next"]})

    (pick,), (ship,) = page["items"], rest.json()["items"]
    assert (pick["id"], pick["state"], pick["attempt"]) == ("pick", "READY", 1)
    assert (ship["id"], ship["depends_on"]) == ("ship", ["pick"])
    assert ship["waiting_for"][0]["message"] == "1 parent has not ended"


async def test_a_paused_run_begins_nothing_until_it_is_resumed(each: Services) -> None:
    async with client_for(each) as client:
        run_id = await start(client, a_definition())
        paused = (await client.post(f"/v1/runs/{run_id}/pause")).json()

        async with at_work(each):
            waiting = (await client.get(f"/v1/runs/{run_id}/wait?timeout=0.3")).json()
            await client.post(f"/v1/runs/{run_id}/resume")
            ended = (await client.get(f"/v1/runs/{run_id}/wait?timeout=20")).json()

    assert (paused["state"], waiting["state"], ended["state"]) == ("PAUSED", "PAUSED", "SUCCEEDED")


async def test_a_cancelled_run_ends(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        run_id = await start(client, one_task("sleep"))
        await client.post(f"/v1/runs/{run_id}/cancel")

        run = (await client.get(f"/v1/runs/{run_id}/wait?timeout=20")).json()
        again = await client.post(f"/v1/runs/{run_id}/cancel")
        late = await client.post(f"/v1/runs/{run_id}/pause")

    assert (run["state"], again.status_code) == ("CANCELLED", 200)
    assert (late.status_code, late.json()["code"]) == (409, "ENDED")


async def test_what_failed_is_tried_again(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        run_id = await start(client, one_task("boom"))
        await client.get(f"/v1/runs/{run_id}/wait?timeout=20")

        answer = (await client.post(f"/v1/runs/{run_id}/retry")).json()
        ended = (await client.get(f"/v1/runs/{run_id}/wait?timeout=20")).json()

    assert (answer["tasks"], answer["run"]["generation"]) == (1, 2)
    assert ended["state"] == "FAILED"


async def test_nothing_is_there_for_another_namespace(each: Services) -> None:
    async with client_for(each) as client:
        run_id = await start(client, a_definition())
        paths = ["", "/tasks", "/tasks/pick", "/result", "/wait", "/events"]
        elsewhere = {"Tidemill-Namespace": "other"}

        looks = [await client.get(f"/v1/runs/{run_id}{path}", headers=elsewhere) for path in paths]
        acts = [
            await client.post(f"/v1/runs/{run_id}/{act}", headers=elsewhere)
            for act in ("cancel", "pause", "resume", "retry")
        ]
        listed = (await client.get("/v1/runs", headers=elsewhere)).json()

    assert {answer.status_code for answer in (*looks, *acts)} == {404}
    assert listed["items"] == []


class Operator(SingleUser):
    """Somebody who may start what is deployed, and nothing else."""

    async def authenticate(self, authorization: str | None) -> Principal | None:
        return Principal(id="ada", name="ada", memberships={"default": Role.OPERATOR})


async def test_a_definition_sent_along_needs_more_than_a_start(services: Services) -> None:
    app = build_app(services, Security(authenticator=Operator()))
    async with client_for(services) as editor, client_of(app) as operator:
        await editor.post("/v1/workflows", json=a_definition())
        body = {"definition": a_definition()}

        deployed = await operator.post("/v1/runs", json={"workflow": "orders"})
        own = await operator.post("/v1/runs", json=body)
        bulk = await operator.post("/v1/runs:bulk", json=[{"workflow": "orders"}, body])

    assert (deployed.status_code, own.status_code, own.json()["code"]) == (201, 403, "FORBIDDEN")
    assert ["id" in one for one in bulk.json()["items"]] == [True, False]
    assert bulk.json()["items"][1]["problem"]["status"] == 403
