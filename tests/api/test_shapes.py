"""The shapes of other systems: exactly as their clients expect them, and runs all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from tests.api.crew import Crew, at_work
from tidemill.api.services import Services

STEPS = [
    {"name": "Fetch data", "type": "default"},
    {"name": "Load", "type": "noop", "payload": {"n": 1}, "max_retries": 0},
]


@pytest.fixture
async def crew(services: Services) -> AsyncIterator[Crew]:
    """Somebody who works."""
    async with at_work(services) as crew:
        yield crew


async def posted(client: httpx.AsyncClient, path: str, body: Any, status: int = 201) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def read(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ended(client: httpx.AsyncClient, run_id: str) -> Any:
    return await read(client, f"/v1/runs/{run_id}/wait?timeout=20")


# Jobs


async def test_a_job_is_answered_with_every_field(client: httpx.AsyncClient) -> None:
    body = {
        "type": "compute",
        "payload": {"iterations": 3},
        "max_retries": 2,
        "idempotency_key": "k",
    }

    job = await posted(client, "/api/v1/jobs", body)

    assert UUID(job.pop("id"))
    assert job.pop("created_at").endswith("Z")
    assert job == {**body, "status": "queued", "attempt": 0}


async def test_a_job_without_a_key_gets_one_that_holds(client: httpx.AsyncClient) -> None:
    first = await posted(client, "/api/v1/jobs", {"type": "default"})
    again = {"type": "default", "idempotency_key": first["idempotency_key"]}

    second = await posted(client, "/api/v1/jobs", again)

    assert (second["id"], second["max_retries"]) == (first["id"], 3)
    assert second == first


async def test_a_key_with_another_body_is_a_conflict(client: httpx.AsyncClient) -> None:
    await posted(client, "/api/v1/jobs", {"type": "default", "idempotency_key": "k"})

    body = {"type": "default", "idempotency_key": "k", "payload": 1}
    problem = await posted(client, "/api/v1/jobs", body, 409)

    assert problem["code"] == "KEY_REUSED"


async def test_an_unknown_type_lists_the_known_ones_and_stores_nothing(
    client: httpx.AsyncClient,
) -> None:
    problem = await posted(client, "/api/v1/jobs", {"type": "shell"}, 400)

    assert problem["code"] == "UNKNOWN_TYPE"
    assert all(name in problem["errors"][0]["message"] for name in ("default", "flaky", "notify"))
    assert await read(client, "/api/v1/jobs") == []


@pytest.mark.usefixtures("crew")
async def test_a_job_runs_and_v1_knows_it_by_the_same_id(client: httpx.AsyncClient) -> None:
    job = await posted(client, "/api/v1/jobs", {"type": "default", "payload": [1]})

    run = await ended(client, job["id"])
    done = await read(client, f"/api/v1/jobs/{job['id']}")

    assert (run["state"], run["kind"], run["key"]) == ("SUCCEEDED", "job", job["idempotency_key"])
    assert (done["status"], done["attempt"], done["payload"]) == ("completed", 1, [1])
    assert {"started_at", "completed_at"} <= set(done)
    assert [one["id"] for one in await read(client, "/api/v1/jobs?status=completed")] == [job["id"]]
    assert await read(client, "/api/v1/jobs?status=queued") == []


async def test_jobs_are_listed_newest_first(client: httpx.AsyncClient) -> None:
    ids = [(await posted(client, "/api/v1/jobs", {"type": "default"}))["id"] for _ in range(3)]

    assert [job["id"] for job in await read(client, "/api/v1/jobs")] == ids[::-1]
    assert [job["id"] for job in await read(client, "/api/v1/jobs?limit=1")] == ids[-1:]


# Chains


@pytest.mark.usefixtures("crew")
async def test_a_chain_runs_step_by_step(client: httpx.AsyncClient) -> None:
    chain = await posted(client, "/api/v1/workflows", {"name": "Nightly import", "steps": STEPS})
    await ended(client, chain["id"])

    shown = await read(client, f"/api/v1/workflows/{chain['id']}")

    assert UUID(chain["id"])
    assert (chain["status"], chain["current_step"], chain["total_steps"]) == ("pending", 0, 2)
    assert (shown["name"], shown["status"], shown["current_step"]) == (
        "Nightly import",
        "completed",
        2,
    )
    assert [step["name"] for step in shown["steps"]] == ["Fetch data", "Load"]
    assert [step["status"] for step in shown["steps"]] == ["completed", "completed"]
    assert shown["steps"][1]["payload"] == {"n": 1}


async def test_a_chain_with_a_wrong_step_is_refused_whole(client: httpx.AsyncClient) -> None:
    body = {"name": "x", "steps": [*STEPS, {"name": "bad", "type": "nope"}]}

    problem = await posted(client, "/api/v1/workflows", body, 400)

    assert problem["errors"][0]["path"] == "steps[2].type"
    assert (await read(client, "/v1/runs"))["items"] == []


# Step by step


async def stepwise(client: httpx.AsyncClient) -> tuple[str, str, str]:
    workflow = (await posted(client, "/api/workflows", {"name": "Report"}))["id"]
    ids = [
        (
            await posted(
                client,
                "/api/tasks",
                {"workflowId": workflow, "name": name, "type": "default", "maxRetries": 1},
            )
        )["id"]
        for name in ("collect", "send out")
    ]
    return workflow, ids[0], ids[1]


@pytest.mark.usefixtures("crew")
async def test_a_workflow_is_put_together_and_started(client: httpx.AsyncClient) -> None:
    workflow, first, second = await stepwise(client)
    edge = {"workflowId": workflow, "taskId": second, "dependsOnTaskId": first}
    await posted(client, "/api/dependencies", edge)
    before = await read(client, f"/api/workflows/{workflow}")

    answer = await client.post(f"/api/workflows/{workflow}/start")
    run = await ended(client, answer.json()["runId"])
    after = await read(client, f"/api/workflows/{workflow}")

    assert (before["status"], before["tasks"][1]["dependsOn"]) == ("DRAFT", [first])
    assert (answer.status_code, run["state"]) == (202, "SUCCEEDED")
    assert after["runId"] == run["id"]
    assert [(task["id"], task["status"]) for task in after["tasks"]] == [
        (first, "SUCCEEDED"),
        (second, "SUCCEEDED"),
    ]
    assert (await read(client, f"/v1/workflows/{workflow}"))["title"] == "Report"


async def test_the_edge_that_closes_a_cycle_is_refused(client: httpx.AsyncClient) -> None:
    workflow, first, second = await stepwise(client)
    edge = {"workflowId": workflow, "taskId": second, "dependsOnTaskId": first}
    await posted(client, "/api/dependencies", edge)
    back = {"workflowId": workflow, "taskId": first, "dependsOnTaskId": second}

    problem = await posted(client, "/api/dependencies", back, 400)

    assert problem["code"] == "CYCLE"
    assert (await read(client, f"/api/workflows/{workflow}"))["tasks"][0]["dependsOn"] == []


async def test_an_empty_workflow_cannot_start(client: httpx.AsyncClient) -> None:
    workflow = (await posted(client, "/api/workflows", {"name": "Report"}))["id"]

    answer = await client.post(f"/api/workflows/{workflow}/start")

    assert (answer.status_code, answer.json()["code"]) == (400, "EMPTY")


# DAGs under the client's own id


def a_dag(workflow_id: str = "order 42") -> dict[str, Any]:
    return {
        "workflowId": workflow_id,
        "tasks": [
            {"taskId": "a", "dependencies": [], "payload": 1, "compensationPayload": {"undo": 1}},
            {"taskId": "b", "dependencies": ["a"], "payload": 2},
        ],
    }


@pytest.mark.usefixtures("crew")
async def test_a_dag_is_known_by_the_clients_own_id(client: httpx.AsyncClient) -> None:
    started = await posted(client, "/workflows", a_dag())
    run = await ended(client, "order 42")

    shown = await read(client, "/workflows/order 42")

    assert (started["workflowId"], started["status"]) == ("order 42", "RUNNING")
    assert (run["id"], run["state"]) == (started["runId"], "SUCCEEDED")
    first, second = shown["tasks"]
    assert (first["taskId"], first["type"], first["compensationPayload"]) == (
        "a",
        "default",
        {"undo": 1},
    )
    assert "compensationPayload" not in second
    assert [second[name] for name in ("status", "retryCount", "nextRetryAt")] == [
        "SUCCEEDED",
        0,
        None,
    ]


async def test_the_same_id_twice_is_a_conflict(client: httpx.AsyncClient) -> None:
    await posted(client, "/workflows", a_dag())

    problem = await posted(client, "/workflows", a_dag(), 409)

    assert problem["code"] == "ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("dependencies", "code"), [(["b"], "CYCLE"), (["a"], "CYCLE"), (["z"], "UNKNOWN_TASK")]
)
async def test_a_wrong_dag_is_refused_and_nothing_stored(
    client: httpx.AsyncClient, dependencies: list[str], code: str
) -> None:
    dag = a_dag()
    dag["tasks"][0]["dependencies"] = dependencies

    problem = await posted(client, "/workflows", dag, 400)

    assert problem["code"] == code
    assert (await client.get("/workflows/order 42")).status_code == 404


async def test_the_namespace_says_who_runs_tasks_without_a_type(
    client: httpx.AsyncClient, services: Services
) -> None:
    default = await services.store.identity.namespace("default")
    assert default is not None
    async with services.store.transaction() as tx:
        changed = msgspec.structs.replace(default, default_executor="noop")
        assert await tx.identity.settings.save_namespace(changed)

    await posted(client, "/workflows", a_dag())

    assert (await read(client, "/workflows/order 42"))["tasks"][0]["type"] == "noop"


# Metrics


def numbers(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def scraped(client: httpx.AsyncClient, **wanted: float) -> None:
    """Numbers follow within a moment: facts get their place first."""
    found: dict[str, float] = {}
    for _ in range(200):
        found = numbers((await client.get("/metrics")).text)
        if all(found.get(NAMES.get(name, name)) == value for name, value in wanted.items()):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{found}, not {wanted}")


NAMES = {
    "holds_total": 'jobs_total{type="hold"}',
    "defaults_total": 'jobs_total{type="default"}',
    "ada_busy": 'worker_busy{worker="ada"}',
}


async def test_metrics_follow_jobs(client: httpx.AsyncClient, services: Services) -> None:
    async with at_work(services) as crew:
        held = (await posted(client, "/v1/runs", {"definition": HOLDING}))["id"]
        await scraped(client, holds_total=1, ada_busy=1, jobs_success_total=0)
        crew.released.set()
        await ended(client, held)
        job = await posted(client, "/api/v1/jobs", {"type": "default"})
        await ended(client, job["id"])
        await scraped(client, defaults_total=1, jobs_success_total=2, job_latency_seconds_count=2)
        bad = await posted(client, "/v1/runs", {"definition": FAILING})
        await ended(client, bad["id"])
        await scraped(client, jobs_failed_total=1, dead_letter_depth=1, queue_depth=0, ada_busy=0)


async def test_what_nobody_takes_is_the_depth_of_the_queue(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        await posted(client, "/api/v1/jobs", {"type": "default"})

    found = numbers((await client.get("/metrics")).text)

    assert found["queue_depth"] == 3


HOLDING = {"name": "holding", "tasks": [{"id": "only", "executor": "hold"}]}
FAILING = {"name": "failing", "tasks": [{"id": "only", "executor": "boom"}]}
