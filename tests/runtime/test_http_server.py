"""The HTTP server of a role: TLS, clients that dawdle, and an end in good order."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from tests.api.stage import opened
from tidemill.api.app import build_app
from tidemill.api.call import BODY_BYTES_MAX
from tidemill.api.routing import EVENT_STREAM, JSON, PUBLIC, Call, Stream, endpoint
from tidemill.api.routing import Endpoint as ApiEndpoint
from tidemill.api.security import Security
from tidemill.domain.errors import InvalidInput
from tidemill.runtime import http_server
from tidemill.runtime.addresses import Endpoint
from tidemill.runtime.http_server import HttpServer, tls_options
from tidemill.runtime.listening import listen_tcp, listen_unix
from tidemill.runtime.system import SystemClock
from tidemill.stores.sqlite.store import SqliteStore

HERE = Endpoint("127.0.0.1", 0)
NOTE = b"POST /notes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BEGUN = asyncio.Event()


@endpoint("GET", "/slow", permission=PUBLIC, summary="Takes a moment", tag="x")
async def slow(call: Call) -> str:
    """Until the server is asked to stop."""
    await call.services.closing.wait()
    return "done"


@endpoint("GET", "/ticks", permission=PUBLIC, summary="Ticks", tag="x", media_type=EVENT_STREAM)
async def ticks(call: Call) -> Stream:
    """One, and then silence for ever."""
    return Stream(_ticks())


async def _ticks() -> AsyncIterator[bytes]:
    yield b"data: 1\n\n"
    await asyncio.Event().wait()


@endpoint(
    "POST",
    "/notes",
    permission=PUBLIC,
    summary="Take a note",
    tag="x",
    consumes={JSON: Any},
    status=201,
)
async def note(call: Call) -> int:
    """How long it is."""
    BEGUN.set()
    return len(await call.body_bytes())


@asynccontextmanager
async def a_server(
    *more: ApiEndpoint, grace_seconds: float = 5, tls: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[HttpServer, int]]:
    """A server on a free port of this machine."""
    store = SqliteStore(":memory:", SystemClock(), threads=False)
    await store.migrate()
    listener = listen_tcp(HERE)
    port = listener.getsockname()[1]
    async with opened(store) as services:
        app = build_app(services, Security(tls=bool(tls)), (slow, ticks, note, *more))
        server = HttpServer(app, listener, grace_seconds=grace_seconds, **(tls or {}))
        await server.start()
        try:
            yield server, port
        finally:
            await server.stop()
    await store.close()


async def test_requests_finish_and_streams_end_when_it_stops() -> None:
    async with a_server() as (server, port), httpx.AsyncClient() as client:
        asked = [
            asyncio.create_task(client.get(f"http://127.0.0.1:{port}/{path}"))
            for path in ("slow", "ticks")
        ]
        async with client.stream("GET", f"http://127.0.0.1:{port}/ticks") as begun:
            await anext(begun.aiter_raw())
            await server.stop()
        answers = await asyncio.gather(*asked)

    assert [answer.text for answer in answers] == ['"done"', "data: 1\n\n"]


async def test_who_does_not_finish_within_the_grace_is_left_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    BEGUN.clear()

    async with a_server(grace_seconds=0.1) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(NOTE + b"Content-Length: 5\r\n\r\n[")
        await BEGUN.wait()
        async with asyncio.timeout(5):
            await server.stop()
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()

    assert caplog.text == ""


async def test_nobody_is_let_in_after_it_has_stopped() -> None:
    async with a_server() as (server, port), httpx.AsyncClient() as client:
        await server.stop()
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://127.0.0.1:{port}/slow")


@pytest.mark.parametrize("sent", [b"", b"GET /slow HTT", b"GET /slow HTTP/1.1\r\nHost: x\r\n"])
async def test_who_does_not_finish_a_question_is_left(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.05)

    async with a_server() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(5):
            left = await reader.read()
        writer.close()
        await writer.wait_closed()

    assert left == b""


async def test_a_head_without_end_is_not_read_on() -> None:
    async with a_server() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /slow HTTP/1.1\r\n" + b"X: y\r\n" * 20_000)
        async with asyncio.timeout(5):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        with suppress(ConnectionResetError):
            await writer.wait_closed()


async def test_a_certificate_makes_it_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    tls = tls_options(tmp_path / "cert.pem", tmp_path / "key.pem")
    async with a_server(tls=tls) as (_, port), httpx.AsyncClient(verify=trust) as client:
        answer = await client.get(f"https://127.0.0.1:{port}/nowhere")

    assert answer.status_code == 404
    assert "strict-transport-security" in answer.headers


def test_an_address_that_is_taken_is_told_with_the_fix() -> None:
    with listen_tcp(HERE) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=r"--listen 127\.0\.0\.1:0 for a free port"):
            listen_tcp(Endpoint("127.0.0.1", port))


def test_a_unix_socket_is_for_this_user_alone(tmp_path: Path) -> None:
    with listen_unix(tmp_path / "http.sock"):
        assert (tmp_path / "http.sock").stat().st_mode & 0o777 == 0o600


async def _exchange(port: int, *pieces: bytes) -> bytes:
    """Everything that is answered until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    with suppress(ConnectionResetError):
        await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET /slow HTTP/1.1\nHost: x\n\n",
        b"GET /slow HTTP/1.1\r\nHost : x\r\n\r\n",
        NOTE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        NOTE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        NOTE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_as_a_problem(sent: bytes) -> None:
    async with a_server() as (_, port):
        answer = await _exchange(port, sent)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in answer
    assert b'"BAD_HTTP"' in answer


async def test_a_body_that_stops_in_the_middle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "BODY_SECONDS", 0.05)

    async with a_server() as (_, port):
        answer = await _exchange(port, NOTE + b"Content-Length: 5\r\n\r\n[")

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"TIMEOUT"' in answer


async def test_who_sends_too_much_reads_the_answer_all_the_same() -> None:
    body = b"x" * (BODY_BYTES_MAX + 1)

    async with a_server() as (_, port):
        answer = await _exchange(port, NOTE + b"Content-Length: %d\r\n\r\n" % len(body), body)

    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_what_stands_behind_a_body_is_not_kept() -> None:
    head = NOTE + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"

    async with a_server() as (_, port):
        answer = await _exchange(port, head, *[b"X: %s\r\n" % (b"y" * 60_000)] * 10, b"\r\n")

    assert answer.startswith(b"HTTP/1.1 201 ")


async def test_nobody_is_upgraded() -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"

    async with a_server() as (_, port):
        plain = await _exchange(port, b"GET /nowhere HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n")
        body = await _exchange(port, NOTE + upgrade + b"Content-Length: 2\r\n\r\n{}")

    assert plain.startswith(b"HTTP/1.1 404 ")
    assert b"connection: close" in plain
    assert b'"NO_UPGRADE"' in body


async def test_a_body_in_a_coding_that_is_not_read_is_refused() -> None:
    sent = NOTE + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"

    async with a_server() as (_, port):
        answer = await _exchange(port, sent)

    assert b'"BAD_ENCODING"' in answer


async def test_a_stream_ends_with_its_client_also_when_more_was_asked() -> None:
    ended = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            async for piece in _ticks():
                yield piece
        finally:
            ended.set()

    @endpoint("GET", "/own", permission=PUBLIC, summary="x", tag="x", media_type=EVENT_STREAM)
    async def own(call: Call) -> Stream:
        """Ticks that tell their end."""
        return Stream(pieces())

    async with a_server(own) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /own HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
        await reader.readuntil(b"data: 1")
        writer.transport.abort()
        async with asyncio.timeout(5):
            await ended.wait()
