"""Requests and answers over a small table of endpoints, as clients see them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.api.endpoints import ENDPOINTS
from tests.api.stage import client_of
from tidemill.api.app import Application, build_app
from tidemill.api.call import BODY_BYTES_MAX
from tidemill.api.routing import PUBLIC, Call, endpoint
from tidemill.api.security import Security
from tidemill.api.services import Services
from tidemill.domain.permissions import Permission

JSON = {"content-type": "application/json"}


@pytest.fixture
def small(services: Services) -> Application:
    """The small table, for a single user."""
    return build_app(services, Security(), ENDPOINTS)


@pytest.fixture
async def things(small: Application) -> AsyncIterator[httpx.AsyncClient]:
    """A client of it."""
    async with client_of(small) as client:
        yield client


async def test_a_body_goes_in_and_a_view_comes_out(things: httpx.AsyncClient) -> None:
    answer = await things.post("/things", json={"name": "bolt", "colour": "blue"})

    assert (answer.status_code, answer.json()["name"]) == (201, "bolt")
    assert answer.headers["content-type"] == "application/json"


async def test_query_and_namespace_reach_the_handler(things: httpx.AsyncClient) -> None:
    answer = await things.get(
        "/things?limit=3&colour=red", headers={"tidemill-namespace": "team-a"}
    )

    assert answer.json() == [3, ["red"], False, None, "team-a"]


async def test_a_problem_says_what_where_and_why(things: httpx.AsyncClient) -> None:
    answer = await things.post("/things", json={"name": ""}, headers={"x-request-id": "abc-1"})

    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json() == {
        "type": "urn:tidemill:problem:too-short",
        "title": "Bad Request",
        "status": 400,
        "detail": "name: must not be empty",
        "code": "TOO_SHORT",
        "instance": "/things",
        "request_id": "abc-1",
        "errors": [{"path": "name", "message": "must not be empty", "code": "TOO_SHORT"}],
    }


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/things/none", 404, "NOT_FOUND"),
        ("GET", "/nowhere", 404, "NOT_FOUND"),
        ("GET", "/things/", 404, "NOT_FOUND"),
        ("GET", "//things", 404, "NOT_FOUND"),
        ("GET", "/things/%ff", 404, "NOT_FOUND"),
        ("DELETE", "/things", 405, "METHOD_NOT_ALLOWED"),
        ("OPTIONS", "/things", 405, "METHOD_NOT_ALLOWED"),
        ("TRACE", "/things", 405, "METHOD_NOT_ALLOWED"),
        ("HEAD", "/ticks", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/away", 503, "UNAVAILABLE"),
        ("GET", "/broken", 500, "INTERNAL"),
        ("GET", "/open?x=1", 400, "UNKNOWN_FIELD"),
        ("PUT", "/things/a/sizes/x", 400, "WRONG_TYPE"),
        ("POST", "/things", 415, "UNSUPPORTED_MEDIA_TYPE"),
    ],
)
async def test_refusals_have_a_status_and_a_code(
    things: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await things.request(method, path)

    assert answer.status_code == status
    if method != "HEAD":
        assert answer.json()["code"] == code
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_a_handler_names_its_own_code(things: httpx.AsyncClient) -> None:
    answer = await things.post("/things", json={"name": "double"})

    assert (answer.status_code, answer.json()["code"]) == (409, "ALREADY_EXISTS")


async def test_a_method_that_is_not_there_names_those_that_are(things: httpx.AsyncClient) -> None:
    answer = await things.patch("/things", json={})

    assert answer.headers["allow"] == "GET, HEAD, POST"


async def test_a_passing_fault_says_when_to_try_again(things: httpx.AsyncClient) -> None:
    answer = await things.get("/away")

    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("path", ["/broken", "/refused"])
async def test_a_mistake_of_ours_is_told_to_the_log_alone(
    things: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    answer = await things.get(path, headers={"x-request-id": "find-me"})

    assert "hunter2" not in answer.text
    assert "find-me" in answer.json()["detail"]
    assert "hunter2" in caplog.text
    assert "find-me" in caplog.text


async def test_a_head_has_the_headers_of_its_get(things: httpx.AsyncClient) -> None:
    got, head = await things.get("/things/7"), await things.head("/things/7")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers["etag"] == got.headers["etag"]


@pytest.mark.parametrize(("tag", "status"), [('"v1"', 304), ('W/"v1"', 304), ('"v0"', 200)])
async def test_who_has_the_answer_already_gets_no_body(
    things: httpx.AsyncClient, tag: str, status: int
) -> None:
    answer = await things.get("/things/7", headers={"if-none-match": tag})

    assert (answer.status_code, bool(answer.content)) == (status, status == 200)
    assert answer.headers["etag"] == '"v1"'


@pytest.mark.parametrize(("tag", "status"), [('"v1"', 204), ("*", 204), ('"v0"', 412)])
async def test_a_change_of_what_has_changed_is_refused(
    things: httpx.AsyncClient, tag: str, status: int
) -> None:
    answer = await things.put("/things/7/sizes/1", headers={"if-match": tag})

    assert answer.status_code == status


@pytest.mark.parametrize("sent", ["a b", "x" * 129, "é", "", "a\nb"])
async def test_a_strange_request_id_is_replaced(small: Application, sent: str) -> None:
    async with client_of(small) as client:
        request = client.build_request("GET", "/open")
        request.headers.raw.append((b"x-request-id", sent.encode()))
        answer = await client.send(request)

    assert answer.headers["x-request-id"] != sent
    assert len(answer.headers["x-request-id"]) < 40


async def test_a_path_parameter_may_hold_any_character(things: httpx.AsyncClient) -> None:
    answer = await things.get("/things/a%2Fb%20%C3%BC%7B%7D")

    assert answer.json()["id"] == "a/b ü{}"


async def test_a_body_of_another_kind_is_refused_unread(things: httpx.AsyncClient) -> None:
    answer = await things.post("/things", content=b'{"name": "a"}', headers={"content-type": "x/y"})

    assert answer.status_code == 415
    assert answer.json()["detail"] == "Content-Type must be application/json, not x/y"


async def test_a_form_is_refused_where_no_body_is_expected(things: httpx.AsyncClient) -> None:
    answer = await things.put("/things/7/sizes/1", data={"a": "b"})

    assert answer.status_code == 415


async def test_a_charset_does_not_matter(things: httpx.AsyncClient) -> None:
    kind = {"content-type": "Application/JSON; charset=utf-8"}

    answer = await things.post("/things", content=b'{"name": "a"}', headers=kind)

    assert answer.status_code == 201


async def test_a_body_that_is_announced_too_large_is_not_read(small: Application) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        read += 1
        yield b"{"

    async with client_of(small) as client:
        headers = {**JSON, "content-length": str(BODY_BYTES_MAX + 1)}
        answer = await client.post("/things", content=body(), headers=headers)

    assert (answer.status_code, answer.json()["code"], read) == (413, "TOO_LARGE", 0)
    assert answer.headers["connection"] == "close"


async def test_a_body_that_grows_too_large_is_not_read_to_its_end(small: Application) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1_000):
            read += 1
            yield b" " * 1_000_000

    async with client_of(small) as client:
        answer = await client.post("/things", content=body(), headers=JSON)

    assert (answer.status_code, read <= 12) == (413, True)


async def test_lines_are_answered_as_they_come(things: httpx.AsyncClient) -> None:
    async def body() -> AsyncIterator[bytes]:
        for piece in (b"on", b"e\n\ntwo\r\n", b"three"):
            yield piece

    kind = {"content-type": "application/x-ndjson"}

    answer = await things.post("/things:bulk", content=body(), headers=kind)

    assert answer.text == "one\ntwo\nthree\n"


async def test_the_same_path_takes_a_list_in_json(things: httpx.AsyncClient) -> None:
    answer = await things.post("/things:bulk", json=[{"name": "a"}, {"name": "b"}])

    assert answer.text == "a\nb\n"


async def test_a_stream_that_cannot_begin_is_refused(things: httpx.AsyncClient) -> None:
    answer = await things.post("/things:bulk", json=[{"name": ""}, {"nme": "b"}])

    assert (answer.status_code, len(answer.json()["errors"])) == (400, 3)


async def test_a_line_that_is_too_long_is_refused(things: httpx.AsyncClient) -> None:
    kind = {"content-type": "application/x-ndjson"}

    answer = await things.post("/things:bulk", content=b"x" * 101, headers=kind)

    assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")


async def test_a_stream_ends_when_the_process_is_about_to(
    small: Application, services: Services
) -> None:
    async with client_of(small) as client:
        reading = asyncio.create_task(client.get("/ticks"))
        await asyncio.sleep(0)
        services.closing.set()
        answer = await reading

    assert answer.text == "data: 1\n\ndata: 2\n\n"
    assert answer.headers["content-type"] == "text/event-stream"


async def test_a_header_that_decides_is_sent_once(things: httpx.AsyncClient) -> None:
    answer = await things.get("/open", headers=[("authorization", "a"), ("authorization", "b")])

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "authorization")


async def test_every_answer_carries_the_headers_that_protect_it(things: httpx.AsyncClient) -> None:
    for path in ("/open", "/nowhere", "/broken"):
        headers = (await things.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "'unsafe-inline'" not in headers["content-security-policy"]
        assert "strict-transport-security" not in headers


async def test_https_is_remembered(services: Services) -> None:
    async with client_of(build_app(services, Security(tls=True), ENDPOINTS)) as client:
        answer = await client.get("/open")

    assert answer.headers["strict-transport-security"].startswith("max-age=")


async def test_the_log_of_requests_has_no_query(
    things: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "tidemill.api"):
        await things.get("/things?after=secret", headers={"authorization": "Bearer secret"})

    assert "GET /things 200" in caplog.text
    assert "secret" not in caplog.text


def test_an_endpoint_without_a_permission_cannot_be_declared() -> None:
    with pytest.raises(TypeError):
        endpoint("GET", "/x", summary="x", tag="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="permission is a Permission"):
        endpoint("GET", "/x", permission=None, summary="x", tag="x")  # type: ignore[arg-type]


def test_a_declaration_and_its_handler_must_agree() -> None:
    async def handler(call: Call, other: str) -> None: ...

    with pytest.raises(TypeError, match="parameters differ"):
        endpoint("GET", "/x/{name}", permission=PUBLIC, summary="x", tag="x")(handler)
    with pytest.raises(TypeError, match="errors are codes"):
        endpoint("GET", "/x", permission=PUBLIC, summary="x", tag="x", errors=("NOPE",))


def test_two_endpoints_cannot_share_a_place(services: Services) -> None:
    double = endpoint("GET", "/things", permission=Permission.RUNS_READ, summary="x", tag="x")

    async def other(call: Call) -> None: ...

    with pytest.raises(TypeError, match="declared twice"):
        build_app(services, Security(), (*ENDPOINTS, double(other)))
