"""Jobs, one by one and by the thousand."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import msgspec
import pytest
from starlette.types import Message

from tests.api.crew import a_definition, at_work
from tests.api.stage import client_of
from tidemill.api.app import build_app
from tidemill.api.lines import LineReader, TooLong
from tidemill.api.security import Security
from tidemill.api.services import Services

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(params=["services", "postgres_services"])
def each(request: pytest.FixtureRequest) -> Services:
    """Services over each store."""
    chosen: Services = request.getfixturevalue(request.param)
    return chosen


def client_for(services: Services) -> httpx.AsyncClient:
    """A client of an application over these services."""
    return client_of(build_app(services, Security()))


def lines_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The lines of an NDJSON answer."""
    return [msgspec.json.decode(line) for line in answer.content.splitlines()]


async def test_a_job_is_a_run_of_one_task(each: Services) -> None:
    async with client_for(each) as client, at_work(each):
        body = {"type": "compute", "payload": {"n": 1}, "max_retries": 2, "key": "k1"}
        answer = await client.post("/v1/jobs", json=body)
        job_id = answer.json()["id"]
        run = (await client.get(f"/v1/runs/{job_id}/wait?timeout=20")).json()

        job = (await client.get(f"/v1/jobs/{job_id}")).json()

    assert answer.headers["location"] == f"/v1/jobs/{job_id}"
    assert (run["kind"], run["state"], run["key"]) == ("job", "SUCCEEDED", "k1")
    assert (job["type"], job["payload"], job["max_retries"]) == ("compute", {"n": 1}, 2)
    assert (job["state"], job["result"], job["key"]) == ("SUCCEEDED", None, "k1")


async def test_jobs_are_listed_newest_first(each: Services) -> None:
    async with client_for(each) as client:
        ids = [
            (await client.post("/v1/jobs", json={"type": kind})).json()["id"]
            for kind in ("default", "compute", "default")
        ]

        page = (await client.get("/v1/jobs", params={"limit": 2})).json()
        rest = (await client.get("/v1/jobs", params={"after": page["next"]})).json()
        some = await client.get("/v1/jobs", params={"type": "compute", "state": "READY"})

    assert [job["id"] for job in (*page["items"], *rest["items"])] == ids[::-1]
    assert [job["id"] for job in some.json()["items"]] == [ids[1]]


async def test_a_run_that_is_no_job_is_not_found_among_jobs(services: Services) -> None:
    async with client_for(services) as client:
        started = await client.post("/v1/runs", json={"definition": a_definition()})

        answer = await client.get(f"/v1/jobs/{started.json()['id']}")

    assert answer.status_code == 404


async def test_an_array_is_answered_item_by_item(each: Services) -> None:
    async with client_for(each) as client:
        items = [{"type": "default"}, {"type": "unheard"}, {"type": "default", "key": "k"}, 7]
        items.append({"type": "default", "key": "k"})

        told = (await client.post("/v1/jobs:bulk", json=items)).json()["items"]

    assert [one["index"] for one in told] == [0, 1, 2, 3, 4]
    assert [one["problem"]["code"] for one in told if "problem" in one] == [
        "UNKNOWN_TYPE",
        "WRONG_TYPE",
    ]
    assert told[2]["id"] == told[4]["id"]
    assert (told[2]["created"], told[4].get("created", False)) == (True, False)


async def test_a_line_that_is_wrong_holds_up_nobody(each: Services) -> None:
    async with client_for(each) as client:
        body = b'{"type":"default"}\n\n{"type":\n{"type":"default","extra":1}\n{"type":"noop"}'

        answer = await client.post("/v1/jobs:bulk", content=body, headers=NDJSON)
        listed = (await client.get("/v1/jobs")).json()["items"]

    told = lines_of(answer)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert ["id" in one for one in told] == [True, False, False, True]
    assert told[1]["problem"]["code"] == "NOT_JSON"
    assert told[2]["problem"]["errors"][0]["path"] == "extra"
    assert len(listed) == 2


async def test_runs_are_started_in_bulk_by_name(services: Services) -> None:
    async with client_for(services) as client:
        await client.post("/v1/workflows", json=a_definition())
        body = b'{"workflow":"orders","key":"a"}\n{"workflow":"nothing"}\n{"workflow":"orders"}'

        told = lines_of(await client.post("/v1/runs:bulk", content=body, headers=NDJSON))

    assert [one.get("created") for one in told] == [True, None, True]
    assert told[1]["problem"]["status"] == 404


async def test_many_thousand_lines_are_answered_in_order(services: Services) -> None:
    count = 5_000

    async def body() -> Any:
        for begin in range(0, count, 700):
            rows = range(begin, min(begin + 700, count))
            yield b"".join(b'{"type":"noop","payload":%d}\n' % row for row in rows)

    async with client_for(services) as client:
        told = lines_of(await client.post("/v1/jobs:bulk", content=body(), headers=NDJSON))
        first = (await client.get(f"/v1/jobs/{told[17]['id']}")).json()

    assert [one["index"] for one in told] == list(range(count))
    assert len({one["id"] for one in told}) == count
    assert first["payload"] == 17


async def test_an_answer_comes_before_the_next_line_is_sent(services: Services) -> None:
    app = build_app(services, Security())
    pieces: asyncio.Queue[Message] = asyncio.Queue()
    answers: asyncio.Queue[Message] = asyncio.Queue()
    serving = asyncio.create_task(app(a_bulk_request(), pieces.get, answers.put))

    async with asyncio.timeout(10):
        first = {"type": "http.request", "body": b'{"type":"noop"}\n', "more_body": True}
        await pieces.put(first)
        assert (await answers.get())["status"] == 200
        assert b'"index":0' in (await answers.get())["body"]
        await pieces.put({"type": "http.request", "body": b'{"type":"noop"}', "more_body": False})
        assert b'"index":1' in (await answers.get())["body"]
        await serving


async def test_a_client_that_leaves_in_the_middle_is_let_go(services: Services) -> None:
    app = build_app(services, Security())
    piece = {"type": "http.request", "body": b'{"type":"noop"}\n' * 50, "more_body": True}
    stuck, begun = asyncio.Event(), asyncio.Event()

    async def receive() -> Message:
        await asyncio.sleep(0)
        return piece

    async def send(message: Message) -> None:
        if message.get("body"):
            begun.set()
            await stuck.wait()

    serving = asyncio.create_task(app(a_bulk_request(), receive, send))
    async with asyncio.timeout(10):
        await begun.wait()
        serving.cancel()

        assert isinstance((await asyncio.gather(serving, return_exceptions=True))[0], BaseException)


def a_bulk_request() -> dict[str, Any]:
    """A request with NDJSON, as a server hands it over."""
    return {
        "type": "http",
        "method": "POST",
        "path": "/v1/jobs:bulk",
        "raw_path": b"/v1/jobs:bulk",
        "query_string": b"",
        "scheme": "http",
        "headers": [(b"content-type", b"application/x-ndjson")],
        "client": None,
    }


def test_lines_are_cut_wherever_pieces_end() -> None:
    reader = LineReader(bytes_max=8)

    found = [reader.feed(piece) for piece in (b"ab", b"c\nd\n\n  \ne", b"f\n")]

    assert (found, reader.end()) == ([[], [b"abc", b"d"], [b"ef"]], [])


def test_a_line_that_is_too_long_is_told_once_and_dropped() -> None:
    reader = LineReader(bytes_max=4)

    found = (
        reader.feed(b"toolong") + reader.feed(b"evenlonger") + reader.feed(b"x\nok\nwaytoolong\n")
    )

    assert [one if isinstance(one, bytes) else "long" for one in found] == ["long", b"ok", "long"]
    assert isinstance(found[0], TooLong)
    assert reader.end() == []
