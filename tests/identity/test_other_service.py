"""Another service behind the middleware: it learns who calls from Tidemill, over a channel."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tests.identity.guarded import a_guarded_mill, a_service, a_worker
from tests.identity.stage import House
from tests.roles.gateway_stage import Mill, a_stranger
from tidemill.client.middleware import PRINCIPAL, TidemillAuthMiddleware
from tidemill.client.system import System
from tidemill.client.validation import TokenHolder, TokenValidator, ValidationConfig
from tidemill.domain.errors import Forbidden, InvalidInput, Unauthenticated, Unavailable
from tidemill.domain.events import Succeeded
from tidemill.domain.workflow import TaskSpec

ALWAYS_ASK = ValidationConfig(cache_seconds=0)


class Hours(System):
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
async def mill(house: House) -> AsyncIterator[Mill]:
    async with a_guarded_mill(house) as mill:
        yield mill


@pytest.fixture
async def validator(house: House, mill: Mill) -> AsyncIterator[TokenValidator]:
    async with TokenValidator(mill.address, await a_service(house), ALWAYS_ASK) as made:
        yield made


async def whoami(request: Request) -> JSONResponse:
    holder: TokenHolder = request.scope[PRINCIPAL]
    task = holder.attempt and holder.attempt.task
    return JSONResponse({"kind": holder.kind, "name": holder.name, "task": task})


async def health(request: Request) -> JSONResponse:
    return JSONResponse({"principal": PRINCIPAL in request.scope})


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(socket.scope[PRINCIPAL].kind)
    await socket.close()


def other_service(validator: Any, begun: list[str] | None = None, **rules: Any) -> Any:
    """A small service of somebody else."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if begun is not None:
            begun.append("begun")
        yield

    routes = [Route("/whoami", whoami), Route("/health", health), WebSocketRoute("/live", echo)]
    app = Starlette(routes=routes, lifespan=lifespan)
    return TidemillAuthMiddleware(app, validator, public_paths={"/health"}, **rules)


async def got(app: Any, path: str, *tokens: str) -> httpx.Response:
    headers = [("Authorization", f"Bearer {token}") for token in tokens]
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://orders") as client:
        return await client.get(path, headers=headers)


async def test_a_service_knows_who_calls(house: House, validator: TokenValidator) -> None:
    app = other_service(validator, permission="runs:read")
    ada = await house.user("ada@mill.test", default="viewer")

    answer = await got(app, "/whoami", ada)

    assert answer.json() == {"kind": "user", "name": "ada", "task": None}


async def test_a_role_in_another_namespace_opens_nothing_here(
    house: House, validator: TokenValidator
) -> None:
    app = other_service(validator, permission="runs:read")
    await house.namespaces("other")
    bob = await house.user("bob@mill.test", other="admin")

    assert (await got(app, "/whoami", bob)).status_code == 403


async def test_a_task_shows_its_token_to_a_service(
    house: House, mill: Mill, validator: TokenValidator
) -> None:
    app = other_service(validator)
    run_id = await mill.start(TaskSpec(id="ship", executor="do"))

    async with a_stranger(mill, await a_worker(house)) as stranger:
        (given,) = await stranger.assignments(1)
        during = await got(app, "/whoami", given.task_token)
        await stranger.report(given.token, Succeeded(given.token.epoch))
        await mill.ended(run_id)
    after = await got(app, "/whoami", given.task_token)

    assert during.json() == {"kind": "task", "name": "ship", "task": "ship"}
    assert after.status_code == 401


async def test_strangers_are_told_to_show_a_credential(validator: TokenValidator) -> None:
    app = other_service(validator)

    for tokens in ((), ("tmk_wrong",), ("one", "two"), ("",), ("x" * 9_000,)):
        answer = await got(app, "/whoami", *tokens)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["code"] == "UNAUTHENTICATED"


async def test_who_lacks_the_permission_is_refused(
    house: House, mill: Mill, validator: TokenValidator
) -> None:
    app = other_service(validator, permission="runs:start")
    viewer = await house.user("ada@mill.test", default="viewer")
    await mill.start(TaskSpec(id="ship", executor="do"))
    async with a_stranger(mill, await a_worker(house)) as stranger:
        (given,) = await stranger.assignments(1)
        for token in (viewer, given.task_token, await a_worker(house)):
            answer = await got(app, "/whoami", token)
            assert (answer.status_code, answer.json()["detail"]) == (403, "this needs runs:start")


async def test_a_permission_is_asked_for_in_the_namespace_of_the_service(
    house: House, validator: TokenValidator
) -> None:
    await house.namespaces("orders")
    ada = await house.user("ada@mill.test", default="viewer")

    elsewhere = other_service(validator, permission="runs:read", namespace="orders")

    assert (await got(elsewhere, "/whoami", ada)).status_code == 403
    assert (await got(elsewhere, "/whoami", house.root)).status_code == 200


@pytest.mark.parametrize("path", ["/health/", "//health", "/health/x", "/Health", "/whoami/health"])
async def test_public_paths_are_compared_whole(validator: TokenValidator, path: str) -> None:
    app = other_service(validator)

    assert (await got(app, "/health")).json() == {"principal": False}
    assert (await got(app, path)).status_code == 401


async def test_a_revoked_key_is_refused_at_once_when_nothing_is_remembered(
    house: House, validator: TokenValidator
) -> None:
    app = other_service(validator)
    key = await house.key(house.root)
    assert (await got(app, "/whoami", key)).status_code == 200

    await house.got(house.root, "DELETE", f"/v1/keys/{key.split('_')[1]}")

    assert (await got(app, "/whoami", key)).status_code == 401


async def test_an_answer_is_remembered_for_five_seconds_at_most(house: House, mill: Mill) -> None:
    hours = Hours()
    key = await house.key(house.root)

    async with TokenValidator(mill.address, await a_service(house), system=hours) as validator:
        assert await validator.validate(key)
        await house.got(house.root, "DELETE", f"/v1/keys/{key.split('_')[1]}")
        assert await validator.validate(key)
        hours.seconds = 5.0
        assert await validator.validate(key) is None

    with pytest.raises(InvalidInput, match="cache_seconds: must be between 0 and 5"):
        ValidationConfig(cache_seconds=6)


async def test_a_service_that_may_not_ask_says_that_it_cannot(
    house: House, mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    guest = await house.user("guest@mill.test")
    caplog.set_level(logging.WARNING)

    for credential, error in (("tmk_wrong", Unauthenticated), (guest, Forbidden)):
        async with TokenValidator(mill.address, credential) as validator:
            with pytest.raises(error):
                await validator.validate(house.root)
            answer = await got(other_service(validator), "/whoami", house.root)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")

    assert "has no role in Tidemill" in caplog.text
    assert house.root not in caplog.text


async def test_when_tidemill_does_not_answer_nobody_is_let_in(house: House) -> None:
    config = ValidationConfig(timeout_seconds=0.05)
    async with TokenValidator("127.0.0.1:1", "tmk_any", config) as validator:
        with pytest.raises(Unavailable, match="does not tell who calls"):
            await validator.validate(house.root)
        answer = await got(other_service(validator), "/whoami", house.root)

    assert answer.status_code == 503


async def test_a_websocket_is_closed_to_strangers_and_open_to_holders(
    house: House, validator: TokenValidator
) -> None:
    app = other_service(validator)

    assert await socket_words(app) == [{"type": "websocket.close", "code": 1008, "reason": ""}]
    words = await socket_words(app, house.root)
    assert [one.get("text") for one in words if one["type"] == "websocket.send"] == ["user"]


async def test_the_lifespan_reaches_the_service(validator: TokenValidator) -> None:
    begun: list[str] = []
    app = other_service(validator, begun)
    words: list[Any] = []
    incoming = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Any:
        return next(incoming)

    async def send(message: Any) -> None:
        words.append(message["type"])

    await app({"type": "lifespan", "state": {}}, receive, send)

    assert (begun, words) == (
        ["begun"],
        ["lifespan.startup.complete", "lifespan.shutdown.complete"],
    )


async def test_another_kind_of_connection_is_refused(validator: TokenValidator) -> None:
    app = other_service(validator)

    with pytest.raises(Unauthenticated):
        await app({"type": "webtransport", "headers": []}, None, None)


async def socket_words(app: Any, token: str = "") -> list[dict[str, Any]]:
    """What a WebSocket hears, with a token or without."""
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    scope = {
        "type": "websocket",
        "path": "/live",
        "raw_path": b"/live",
        "query_string": b"",
        "headers": headers,
        "subprotocols": [],
        "state": {},
    }
    words: list[dict[str, Any]] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        words.append(message)

    await app(scope, receive, send)
    return words
