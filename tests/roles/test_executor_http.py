"""The http executor, against a real server in the same process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import pytest

from tests.roles.executor_stage import a_call, failure, run
from tests.roles.worker_stage import RUN, a_workshop
from tests.servers.listening import listening
from tidemill.domain.identifiers import SECOND
from tidemill.worker.executors.http import HttpExecutor, retry_after
from tidemill.worker.failures import TaskFailure


@dataclass
class Server:
    """Answers every path with what the test has put there, and remembers what was asked."""

    url: str = ""
    answers: dict[str, bytes] = field(default_factory=dict)
    requests: list[bytes] = field(default_factory=list)

    def answer(self, path: str, status: str, body: bytes = b"", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.answers[path] = "\r\n".join([*lines, "", ""]).encode() + body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(x[15:]) for x in head.lower().split(b"\r\n") if x[:14] == b"content-length"), 0
        )
        self.requests.append(head + await reader.readexactly(length))
        answer = self.answers.get(head.split(b" ")[1].decode())
        if answer is None:
            await reader.read()  # until the other side has enough
        else:
            writer.write(answer)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    async with listening(made.serve) as port:
        made.url = f"http://127.0.0.1:{port}"
        yield made


@pytest.fixture
async def http() -> AsyncIterator[HttpExecutor]:
    executor = HttpExecutor(a_workshop(result_bytes_max=1_000))
    yield executor
    await executor.close()


async def test_a_json_answer_is_parsed(http: HttpExecutor, server: Server) -> None:
    server.answer("/", "200 OK", b'{"id":7}', Content_Type="application/json", Set_Cookie="x=y")

    result = await run(http, a_call({"url": server.url}))

    assert result == {
        "status": 200,
        "headers": {"content-type": "application/json"},
        "json": {"id": 7},
    }


async def test_another_answer_is_text(http: HttpExecutor, server: Server) -> None:
    server.answer("/", "200 OK", b"hello", Content_Type="text/plain")

    assert (await run(http, a_call({"url": server.url})))["text"] == "hello"


async def test_a_post_sends_the_inputs_and_the_idempotency_key(
    http: HttpExecutor, server: Server
) -> None:
    server.answer("/pay", "201 Created")
    params = {
        "method": "POST",
        "url": {"input": "url"},
        "headers": {"X-Order": {"input": "order"}},
    }
    inputs = {"url": f"{server.url}/pay", "order": 5}

    result = await run(http, a_call(params, inputs))

    request = server.requests[0]
    assert result["status"] == 201
    assert f"idempotency-key: {RUN}:3\r\n".encode() in request.lower()
    assert b"x-order: 5\r\n" in request.lower()
    assert request.endswith(b'"order":5}')


async def test_a_body_given_in_the_params_wins(http: HttpExecutor, server: Server) -> None:
    server.answer("/", "200 OK")

    await run(http, a_call({"method": "PUT", "url": server.url, "json": [1]}, {"a": 2}))

    assert server.requests[0].endswith(b"\r\n\r\n[1]")


@pytest.mark.parametrize(
    ("status", "final"),
    [
        (400, True),
        (404, True),
        (408, False),
        (425, False),
        (429, False),
        (500, False),
        (503, False),
    ],
)
async def test_some_statuses_are_worth_another_try(
    http: HttpExecutor, server: Server, status: int, final: bool
) -> None:
    server.answer("/", f"{status} Oh", b"because")

    kind, got, message = await failure(http, a_call({"url": server.url}))

    assert (kind, got) == ("HttpStatus", final)
    assert message == f"GET {server.url}: {status} because"


async def test_an_expected_status_is_a_result(http: HttpExecutor, server: Server) -> None:
    server.answer("/", "404 Not Found")

    assert (await run(http, a_call({"url": server.url, "expect_status": [404]})))["status"] == 404


async def test_the_servers_wish_for_patience_is_heeded(http: HttpExecutor, server: Server) -> None:
    server.answer("/", "429 Slow Down", Retry_After="7")

    with pytest.raises(TaskFailure) as caught:
        await run(http, a_call({"url": server.url}))

    assert caught.value.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("12", 12), (formatdate(1_000_030, usegmt=True), 30), ("soon", None), (None, None)],
)
def test_patience_is_a_number_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, 1_000_000 * SECOND) == seconds


async def test_a_redirect_is_followed_on_the_same_scheme(
    http: HttpExecutor, server: Server
) -> None:
    server.answer("/old", "302 Found", Location="/new")
    server.answer("/new", "200 OK", b"here")

    assert (await run(http, a_call({"url": f"{server.url}/old"})))["text"] == "here"


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("https://127.0.0.1/", "RedirectRefused"),
        ("file:///etc/passwd", "RedirectRefused"),
        ("/", "TooManyRedirects"),
    ],
)
async def test_other_redirects_are_refused(
    http: HttpExecutor, server: Server, location: str, kind: str
) -> None:
    server.answer("/", "302 Found", Location=location)

    got, final, _ = await failure(http, a_call({"url": f"{server.url}/"}))

    assert (got, final) == (kind, True)


async def test_a_large_answer_is_final(http: HttpExecutor, server: Server) -> None:
    server.answer("/", "200 OK", b"x" * 2_000)

    assert (await failure(http, a_call({"url": server.url})))[:2] == ("ResultTooLarge", True)


async def test_a_server_that_never_answers_is_left(http: HttpExecutor, server: Server) -> None:
    params = {"url": f"{server.url}/never", "timeout_seconds": 0.05}

    assert (await failure(http, a_call(params)))[:2] == ("HttpTimeout", False)


async def test_no_server_is_worth_another_try(http: HttpExecutor) -> None:
    kind, final, _ = await failure(http, a_call({"url": "http://127.0.0.1:1/"}))

    assert (kind, final) == ("HttpError", False)


@pytest.mark.parametrize(
    "params",
    [
        {"url": "ftp://example.com/"},
        {"url": "/just/a/path"},
        {"url": "http://localhost:port"},
        {"url": "http://localhost", "method": "BREW"},
        {"url": "http://localhost", "headers": {"X": "a\r\nY: b"}},
        {"url": {"input": "missing"}},
        {},
    ],
    ids=str,
)
async def test_wrong_params_are_final(http: HttpExecutor, params: dict[str, Any]) -> None:
    kind, final, message = await failure(http, a_call(params))

    assert (kind, final) == ("InvalidParams", True)
    assert message.startswith("params")


async def test_what_httpx_logs_about_our_requests_is_kept_out(
    server: Server, http: HttpExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer("/", "200 OK")
    caplog.set_level(logging.INFO)

    await run(http, a_call({"url": server.url + "/"}))
    logging.getLogger("httpx").info("of somebody's own")

    assert [record.getMessage() for record in caplog.records] == ["of somebody's own"]


def test_inputs_that_the_task_lacks_are_found_before_it_asks(http: HttpExecutor) -> None:
    params = {"url": {"input": "address"}, "headers": {"X-Key": {"input": "key"}}}

    assert http.rehearse(params, ["address"]) == [
        "params.headers.X-Key: the task has no input 'key'; it has: address"
    ]
