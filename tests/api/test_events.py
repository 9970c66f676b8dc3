"""Server-sent events: whatever moves, in order, resumed wherever the client was."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.crew import a_definition, at_work, one_task
from tests.api.stage import client_of
from tests.api.streaming import EventStream, streaming
from tests.contract.conftest import ManualClock
from tidemill.api.app import Application, build_app
from tidemill.api.limits import Limiter
from tidemill.api.resources import events
from tidemill.api.security import Security, SingleUser
from tidemill.api.services import Services
from tidemill.domain.errors import Unauthenticated
from tidemill.domain.principals import SINGLE_USER, Principal

WHOLE_RUN = [
    "workflow.started",
    "task.ready",
    "task.started",
    "task.completed",
    "task.ready",
    "task.started",
    "task.completed",
    "workflow.completed",
]


@pytest.fixture(params=["services", "postgres_services"])
def each(request: pytest.FixtureRequest) -> Services:
    """Services over each store."""
    chosen: Services = request.getfixturevalue(request.param)
    return chosen


class Revocable(SingleUser):
    """Lets everybody in until it does not."""

    def __init__(self) -> None:
        self.revoked = False

    async def authenticate(self, authorization: str | None) -> Principal | None:
        if self.revoked:
            raise Unauthenticated("the key was withdrawn")
        return SINGLE_USER


async def start(app: Application, **fields: object) -> str:
    """Start a run; its id."""
    async with client_of(app) as client:
        answer = await client.post("/v1/runs", json={"definition": a_definition(), **fields})
        run_id: str = answer.json()["id"]
        return run_id


async def types_of(stream: EventStream, count: int) -> list[str]:
    """Short types of the next so many events."""
    found = []
    for _ in range(count):
        message = await stream.message()
        assert message is not None
        found.append(message["data"]["type"].removeprefix("tidemill.").removesuffix(".v1"))
    return found


async def test_a_run_is_followed_from_its_first_event_to_its_last(each: Services) -> None:
    app = build_app(each, Security())
    run_id = await start(app)

    async with at_work(each), streaming(app, f"/v1/runs/{run_id}/events", "after=0") as stream:
        told = await types_of(stream, len(WHOLE_RUN))

    assert told == WHOLE_RUN


async def test_a_client_that_comes_back_misses_nothing(each: Services) -> None:
    app = build_app(each, Security())
    run_id = await start(app)
    path = f"/v1/runs/{run_id}/events"

    async with at_work(each):
        async with streaming(app, path, "after=0") as stream:
            seen = [await stream.message() for _ in range(3)]
        last = seen[-1]["id"] if seen[-1] else ""
        async with streaming(app, path, headers={"Last-Event-ID": last}) as stream:
            rest = await types_of(stream, len(WHOLE_RUN) - 3)

    assert rest == WHOLE_RUN[3:]


async def test_what_moves_is_told_while_it_moves(services: Services) -> None:
    app = build_app(services, Security())

    async with at_work(services) as crew, streaming(app, "/v1/events") as stream:
        await asyncio.wait_for(types_of_start(app, stream), 10)
        crew.released.set()
        told = await types_of(stream, 2)

    assert told == ["task.completed", "workflow.completed"]


async def types_of_start(app: Application, stream: EventStream) -> None:
    """Start a run that waits, and read what it tells until then."""
    async with client_of(app) as client:
        await client.post("/v1/runs", json={"definition": one_task("hold")})
    assert await types_of(stream, 3) == ["workflow.started", "task.ready", "task.started"]


async def test_events_are_chosen_by_workflow_and_type(services: Services) -> None:
    app = build_app(services, Security())
    async with at_work(services), client_of(app) as client:
        for name in ("orders", "bills"):
            run = await client.post("/v1/runs", json={"definition": a_definition(name)})
            await client.get(f"/v1/runs/{run.json()['id']}/wait?timeout=20")
        await asyncio.sleep(0)

        query = "after=0&type=workflow.completed&type=workflow.started"
        async with streaming(app, "/v1/workflows/bills/events", query) as stream:
            found = [await stream.message(), await stream.message()]

    assert [one and one["data"]["data"]["workflow"] for one in found] == ["bills", "bills"]
    assert [one and one["data"]["type"] for one in found] == [
        "tidemill.workflow.started.v1",
        "tidemill.workflow.completed.v1",
    ]


async def test_a_stream_of_no_seconds_ends_with_what_is_there(services: Services) -> None:
    app = build_app(services, Security())
    run_id = await start(app)
    async with at_work(services), client_of(app) as client, asyncio.timeout(20):
        told = 0
        while told < len(WHOLE_RUN):
            answer = await client.get(f"/v1/runs/{run_id}/events?after=0&seconds=0")
            told = answer.text.count("data: ")

    assert answer.headers["content-type"] == "text/event-stream"
    assert told == len(WHOLE_RUN)


async def test_nothing_of_another_namespace_is_told(services: Services) -> None:
    app = build_app(services, Security())
    run_id = await start(app)
    async with at_work(services), client_of(app, **{"Tidemill-Namespace": "other"}) as client:
        mine = await client_of(app).get(f"/v1/runs/{run_id}/wait?timeout=20")
        everything = await client.get("/v1/events?after=0&seconds=0")
        workflow = await client.get("/v1/workflows/orders/events?after=0&seconds=0")

    assert mine.json()["ended"]
    assert (everything.text.count("data: "), workflow.text.count("data: ")) == (0, 0)


async def test_a_hole_is_told_before_the_stream_goes_on(services: Services) -> None:
    app = build_app(services, Security())

    async with at_work(services), streaming(app, "/v1/events", "after=900") as stream:
        message = await stream.message()

    assert message == {"id": "0", "event": "gap", "data": {"after": 900, "before": 1}}


async def test_a_stream_ends_soon_after_its_credentials_do(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "CHECK_SECONDS", 0.05)
    keys = Revocable()
    app = build_app(services, Security(authenticator=keys))

    async with streaming(app, "/v1/events") as stream:
        keys.revoked = True
        ended = await stream.message()

    assert ended is None
    assert stream.comments == [": the credentials no longer hold"]


async def test_asking_whether_credentials_still_hold_is_no_request(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "CHECK_SECONDS", 0.02)
    limiter = Limiter(ManualClock(), 1, burst=1)
    app = build_app(services, Security(authenticator=Revocable(), limiter=limiter))

    async with streaming(app, "/v1/events", "seconds=0.2") as stream:
        ended = await stream.message()

    assert (stream.status, ended, stream.comments) == (200, None, [])


async def test_pings_say_how_far_the_stream_has_come(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(events, "PING_SECONDS", 0.02)
    app = build_app(services, Security())

    async with client_of(app) as client:
        answer = await client.get("/v1/events?seconds=0.2")

    assert ": ping\nid: 0\n\n" in answer.text


async def test_streams_end_when_the_process_is_about_to(services: Services) -> None:
    app = build_app(services, Security())

    async with streaming(app, "/v1/events") as stream:
        services.closing.set()
        ended = await stream.message()

    assert ended is None
