"""Requests that go on for long: they end with their credentials, and leave room for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api.streaming import streaming
from tests.identity.stage import PASSWORD, House
from tidemill.api import bulk_lines, call
from tidemill.api.app import build_app
from tidemill.api.authentication import BearerAuthenticator
from tidemill.api.limits import Crowd
from tidemill.api.security import Security
from tidemill.domain.errors import RateLimited

LINE = b'{"type":"noop"}\n'


def a_bulk_request(key: str) -> dict[str, Any]:
    """A request with NDJSON, as a server hands it over."""
    return {
        "type": "http",
        "method": "POST",
        "path": "/v1/jobs:bulk",
        "raw_path": b"/v1/jobs:bulk",
        "query_string": b"",
        "scheme": "http",
        "headers": [
            (b"content-type", b"application/x-ndjson"),
            (b"authorization", f"Bearer {key}".encode()),
        ],
        "client": None,
    }


async def test_a_bulk_of_lines_ends_soon_after_its_credentials_do(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_lines, "CHECK_SECONDS", 0.0)
    key = await house.key(house.root)
    pieces: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    piece = {"type": "http.request", "body": LINE, "more_body": True}
    serving = asyncio.create_task(house.app(a_bulk_request(key), pieces.get, answers.put))  # type: ignore[arg-type]

    async with asyncio.timeout(10):
        pieces.put_nowait(piece)
        assert (await answers.get())["status"] == 200
        assert b'"created":true' in (await answers.get())["body"]
        await house.got(house.root, "DELETE", f"/v1/keys/{key.split('_')[1]}")
        pieces.put_nowait(piece)

        last = await answers.get()
        await serving

    assert b'"UNAUTHENTICATED"' in last["body"]
    assert len((await house.got(house.root, "GET", "/v1/jobs"))["items"]) == 1


async def test_nobody_takes_the_places_of_all_who_stream(house: House) -> None:
    authenticator, streamers = BearerAuthenticator(house.principals), Crowd(1, "streams")
    house.app = build_app(
        house.services, Security(authenticator=authenticator, streamers=streamers)
    )
    ada = {"authorization": f"Bearer {await house.user('ada@mill.test', default='viewer')}"}
    root = {"authorization": f"Bearer {house.root}"}

    async with (
        streaming(house.app, "/v1/events", headers=ada) as first,
        streaming(house.app, "/v1/events", headers=ada) as second,
        streaming(house.app, "/v1/events", headers=root) as other,
    ):
        assert (first.status, second.status, other.status) == (200, 429, 200)


def test_a_crowd_forgets_who_has_left() -> None:
    crowd = Crowd(1, "requests")

    with crowd.inside("ada"), pytest.raises(RateLimited, match="1 requests"), crowd.inside("ada"):
        pass

    assert len(crowd) == 0


async def test_a_body_drawn_out_does_nothing_for_who_is_out_meanwhile(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "SLOW_SECONDS", 0.0)
    body = {"email": "ada@mill.test", "password": PASSWORD, "role": "admin"}
    ada = await house.got(house.root, "POST", "/v1/users", json=body)
    hers = (await house.login("ada@mill.test"))["access_token"]

    async def drawn_out() -> AsyncIterator[bytes]:
        yield b'{"email": "back@mill.test", '
        await house.got(house.root, "PATCH", f"/v1/users/{ada['id']}", json={"disabled": True})
        yield b'"password": "a mill by the tide", "role": "admin"}'

    json = {"Content-Type": "application/json"}
    answer = await house.ask(hers, "POST", "/v1/users", content=drawn_out(), headers=json)

    assert answer.status_code == 401
    assert len((await house.got(house.root, "GET", "/v1/users"))["items"]) == 2
