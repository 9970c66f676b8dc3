"""Two applications on one PostgreSQL: whichever is asked, the answer is the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import pytest

from tests.api.crew import a_definition, at_work
from tests.api.stage import JOB_TYPES, client_of, opened
from tests.api.streaming import streaming
from tidemill.api.app import build_app
from tidemill.api.security import Security
from tidemill.api.services import Services
from tidemill.stores.postgres.store import PostgresStore

_schemas = count(1)


@asynccontextmanager
async def a_server(dsn: str, schema: str) -> AsyncIterator[Services]:
    """Services with connections, and a bus, of their own: nothing is shared but the database."""
    store = PostgresStore(dsn, schema=schema)
    await store.migrate()
    try:
        async with opened(store, job_types=JOB_TYPES) as services:
            yield services
    finally:
        await store.close()


@pytest.fixture
async def two(postgres_dsn: str) -> AsyncIterator[tuple[Services, Services]]:
    """Two of them."""
    schema = f"two_servers_{next(_schemas)}"
    async with a_server(postgres_dsn, schema) as left, a_server(postgres_dsn, schema) as right:
        yield left, right


def clients_of(two: tuple[Services, Services]) -> list[httpx.AsyncClient]:
    """A client of each."""
    return [client_of(build_app(services, Security())) for services in two]


async def post_all(
    clients: list[httpx.AsyncClient], total: int, body: dict[str, Any]
) -> list[httpx.Response]:
    """The same request many times at once, to one server and the other in turn."""
    posts = (clients[turn % 2].post("/v1/jobs", json=body) for turn in range(total))
    return await asyncio.gather(*posts)


async def test_a_thousand_posts_with_one_key_start_one_run(
    two: tuple[Services, Services],
) -> None:
    clients = clients_of(two)
    body = {"type": "noop", "payload": {"n": 1}, "key": "once"}

    answers = await post_all(clients, 1_000, body)
    other = await clients[1].post("/v1/jobs", json={**body, "payload": {"n": 2}})
    listed = (await clients[0].get("/v1/jobs")).json()["items"]

    assert sorted({answer.status_code for answer in answers}) == [200, 201]
    assert sum(answer.status_code == 201 for answer in answers) == 1
    assert {answer.json()["id"] for answer in answers} == {listed[0]["id"]}
    assert len(listed) == 1
    assert (other.status_code, other.json()["code"]) == (409, "KEY_REUSED")


async def test_a_key_in_the_header_is_the_same_key(two: tuple[Services, Services]) -> None:
    left, right = clients_of(two)
    body = {"definition": a_definition()}

    first = await left.post("/v1/runs", json=body, headers={"Idempotency-Key": "k"})
    second = await right.post("/v1/runs", json={**body, "key": "k"})

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


async def test_a_wait_at_one_server_hears_of_an_end_at_the_other(
    two: tuple[Services, Services],
) -> None:
    left, right = clients_of(two)
    async with at_work(two[0]):
        started = await right.post("/v1/runs", json={"definition": a_definition()})

        run = (await right.get(f"/v1/runs/{started.json()['id']}/wait?timeout=20")).json()

    assert run["state"] == "SUCCEEDED"
    assert (await left.get(f"/v1/runs/{run['id']}")).json()["state"] == "SUCCEEDED"


async def test_a_stream_is_resumed_at_the_other_server(two: tuple[Services, Services]) -> None:
    apps = [build_app(services, Security()) for services in two]
    async with at_work(two[0]), client_of(apps[0]) as client:
        started = await client.post("/v1/runs", json={"definition": a_definition()})
        path = f"/v1/runs/{started.json()['id']}/events"

        async with streaming(apps[0], path, "after=0") as stream:
            first = [await stream.message() for _ in range(4)]
        last = first[-1]["id"] if first[-1] else ""
        async with streaming(apps[1], path, headers={"Last-Event-ID": last}) as stream:
            rest = [await stream.message() for _ in range(4)]

    ids = [one["data"]["id"] for one in (*first, *rest) if one]
    assert len(set(ids)) == len(ids) == 8
    assert rest[-1] is not None
    assert rest[-1]["data"]["type"] == "tidemill.workflow.completed.v1"


async def test_a_deploy_at_one_server_holds_at_once_at_the_other(
    two: tuple[Services, Services],
) -> None:
    left, right = clients_of(two)
    await left.post("/v1/workflows", json=a_definition())
    await right.post("/v1/runs", json={"workflow": "orders"})

    await left.post("/v1/workflows", json=a_definition(description="new"))
    started = await right.post("/v1/runs", json={"workflow": "orders"})

    run = (await left.get(f"/v1/runs/{started.json()['id']}")).json()
    assert run["version"] == 2
