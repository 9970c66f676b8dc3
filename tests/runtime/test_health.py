"""Health over HTTP, to friends and strangers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.servers.listening import listening
from tidemill.runtime.health import (
    REQUEST_BYTES_MAX,
    REQUESTS_MAX,
    Health,
    HealthServer,
    ask_health,
)

READY = Health(role="worker", notes=["tasks: 0 running"])
AWAY = Health(role="scheduler", reasons=["store: unreachable since noon"])


@asynccontextmanager
async def serving(health: Health) -> AsyncIterator[str]:
    async def look() -> Health:
        return health

    server = HealthServer("127.0.0.1:0", look)
    await server.start()
    try:
        yield str(server.endpoint)
    finally:
        await server.stop()


async def ask(endpoint: str, request: bytes) -> bytes:
    host, _, port = endpoint.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_role_without_a_reason_against_it_is_ready() -> None:
    async with serving(READY) as endpoint:
        answer = await ask_health(endpoint)

    assert (answer.role, answer.live, answer.ready) == ("worker", True, True)
    assert answer.notes == ["tasks: 0 running"]


async def test_who_is_not_ready_says_why_and_is_alive_all_the_same() -> None:
    async with serving(AWAY) as endpoint:
        ready = await ask(endpoint, b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
        live = await ask(endpoint, b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n")

    assert ready.startswith(b"HTTP/1.1 503 ")
    assert msgspec.json.decode(ready.partition(b"\r\n\r\n")[2]) == {
        "role": "scheduler",
        "live": True,
        "ready": False,
        "reasons": ["store: unreachable since noon"],
        "notes": [],
    }
    assert live.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", b"404"),
        (b"GET /x/ready HTTP/1.1", b"404"),
        (b"GET /ready/ HTTP/1.1", b"404"),
        (b"POST /ready HTTP/1.1", b"405"),
        (b"\xff\xfe", b"404"),
        (b"GET /ready?verbose HTTP/1.1", b"200"),
    ],
)
async def test_nothing_else_is_answered(request_line: bytes, status: bytes) -> None:
    async with serving(READY) as endpoint:
        answer = await ask(endpoint, request_line + b"\r\n\r\n")

    assert answer.split(b" ")[1] == status


async def test_a_request_without_end_is_cut_off() -> None:
    async with serving(READY) as endpoint:
        assert await ask(endpoint, b"GET /ready HTTP/1.1\r\n" + b"x" * REQUEST_BYTES_MAX) == b""


async def test_strangers_who_say_nothing_make_room_for_those_who_ask() -> None:
    async with serving(READY) as endpoint, contextlib.AsyncExitStack() as stack:
        host, _, port = endpoint.partition(":")
        strangers = []
        for _ in range(REQUESTS_MAX + 1):
            strangers.append(await asyncio.open_connection(host, int(port)))
            stack.callback(strangers[-1][1].close)

        answer = await ask_health(endpoint)

        assert answer.ready
        with contextlib.suppress(ConnectionResetError):
            assert await strangers[0][0].read() == b""  # it was first, and is cut off


async def test_a_process_that_waits_for_its_store_is_alive() -> None:
    never = asyncio.Event()

    async def look() -> Health:
        await never.wait()
        return READY

    server = HealthServer("127.0.0.1:0", look)
    await server.start()
    try:
        live = await ask(str(server.endpoint), b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n")
    finally:
        await server.stop()

    assert live.endswith(b'{"live":true}')


async def test_something_else_that_answers_is_told_apart() -> None:
    async def rude(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0\r\n")

    async with listening(rude) as port:
        with pytest.raises(OSError, match="something else than Tidemill"):
            await ask_health(f"127.0.0.1:{port}")


async def test_a_role_is_asked_at_its_http_address_as_well() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        known = head.startswith(b"GET /health ")
        body = b'{"status":"ok","role":"up","reasons":[],"notes":[]}' if known else b"{}"
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)

    async with listening(serve) as port:
        answer = await ask_health(f"127.0.0.1:{port}")

    assert (answer.role, answer.ready) == ("up", True)
