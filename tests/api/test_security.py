"""Who is let in: what single-user mode refuses, permissions, limits, origins, and odd paths."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote

import httpx
import pytest

from tests.api.endpoints import ENDPOINTS
from tests.api.stage import client_of
from tests.contract.conftest import ManualClock
from tidemill.api.app import Application, build_app
from tidemill.api.limits import Limiter
from tidemill.api.resources import all_endpoints
from tidemill.api.routing import PUBLIC, Endpoint, Open
from tidemill.api.security import LoopbackGuard, Security
from tidemill.api.services import Services
from tidemill.domain.errors import RateLimited, Unauthenticated
from tidemill.domain.permissions import Permission, Role
from tidemill.domain.principals import Principal

VIEWER = Principal(id="v", name="viewer", memberships={"default": Role.VIEWER, "a": Role.OPERATOR})


class OneToken:
    """Knows one token, and two namespaces."""

    async def authenticate(self, authorization: str | None) -> Principal | None:
        """The viewer, for the token."""
        if authorization is None:
            return None
        if authorization != "Bearer right":
            raise Unauthenticated("the token is not known")
        return VIEWER

    async def is_there(self, namespace: str) -> bool:
        """Two of them."""
        return namespace in {"default", "a"}


@pytest.fixture
async def lonely(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    """A server for a single user on 127.0.0.1:8080."""
    security = Security(guard=LoopbackGuard(port=8080))
    async with client_of(build_app(services, security, ENDPOINTS)) as client:
        yield client


@pytest.fixture
async def guarded(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    """A server with accounts."""
    security = Security(authenticator=OneToken())
    async with client_of(build_app(services, security, ENDPOINTS)) as client:
        yield client


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080", "[0:0::1]:8080"]
)
async def test_this_machine_is_let_in_by_its_names(lonely: httpx.AsyncClient, host: str) -> None:
    answer = await lonely.get("/me", headers={"host": host})

    assert answer.json()[0] == "single-user"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8080",
        "127.0.0.1.evil.example:8080",
        "localhost.evil.example:8080",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:08080x",
        "127.0.0.1:08080",
        "127.0.0.1:" + "9" * 5_000,
        "127.0.0.1:8080@evil.example",
        "127.1:8080",
        "0x7f000001:8080",
        "0.0.0.0:8080",
        "[::]:8080",
        "[::1]",
        "[::1",
        "[::ffff:127.0.0.1]:8080",
        "localhost.:8080",
        "evil.example, localhost:8080",
        "",
        ":8080",
        "٨٠٨٠:٨٠٨٠",
    ],
)
@pytest.mark.parametrize("path", ["/me", "/open", "/nowhere"])
async def test_a_name_that_leads_here_is_refused(
    lonely: httpx.AsyncClient, host: str, path: str
) -> None:
    answer = await lonely.get(path, headers={b"host": host.encode()})

    assert (answer.status_code, answer.json()["code"]) == (403, "FOREIGN_HOST")


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost:3000",
        "https://127.0.0.1:8080",
        "http://127.0.0.1:8080.evil.example",
        "http://127.0.0.1",
        "file://",
        "",
    ],
)
async def test_pages_of_others_are_refused(lonely: httpx.AsyncClient, origin: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        answer = await lonely.request(
            method, "/things", headers={"origin": origin, "content-type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "FOREIGN_ORIGIN")
        assert "access-control-allow-origin" not in answer.headers


async def test_our_own_page_is_let_in(lonely: httpx.AsyncClient) -> None:
    answer = await lonely.post(
        "/things", json={"name": "a"}, headers={"origin": "http://127.0.0.1:8080"}
    )

    assert answer.status_code == 201


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]
)
async def test_what_a_form_can_send_changes_nothing(lonely: httpx.AsyncClient, kind: str) -> None:
    for path, method in (("/things", "POST"), ("/things/1/sizes/1", "PUT")):
        answer = await lonely.request(
            method, path, content=b'{"name": "a"}', headers={"content-type": kind}
        )
        assert answer.status_code == 415


async def test_a_configured_name_is_let_in_too(services: Services) -> None:
    guard = LoopbackGuard(port=443, hosts=frozenset({"mill.local"}))
    app = build_app(services, Security(guard=guard), ENDPOINTS)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="https://mill.local"
    ) as client:
        answer = await client.get("/open")

    assert answer.status_code == 200


async def test_who_shows_nothing_is_unknown(guarded: httpx.AsyncClient) -> None:
    answer = await guarded.get("/me")

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("method", "path", "namespace", "status"),
    [
        ("GET", "/things", "default", 200),
        ("POST", "/things", "default", 403),
        ("POST", "/things", "a", 201),
        ("GET", "/things", "b", 403),
        ("GET", "/things", "not a name", 400),
        ("PUT", "/things/1/sizes/1", "a", 403),
        ("GET", "/me", "default", 200),
        ("GET", "/open", "default", 200),
    ],
)
async def test_a_role_holds_in_its_namespace(
    guarded: httpx.AsyncClient, method: str, path: str, namespace: str, status: int
) -> None:
    headers = {"authorization": "Bearer right", "tidemill-namespace": namespace}
    body = {"name": "a"} if path == "/things" and method == "POST" else None

    answer = await guarded.request(method, path, json=body, headers=headers)

    assert answer.status_code == status


async def test_a_namespace_that_is_not_there_is_not_found(services: Services) -> None:
    class Root(OneToken):
        async def authenticate(self, authorization: str | None) -> Principal | None:
            return Principal(id="r", name="root", memberships={"*": Role.ADMIN})

    async with client_of(build_app(services, Security(authenticator=Root()), ENDPOINTS)) as client:
        answer = await client.get("/things", headers={"tidemill-namespace": "gone"})

    assert answer.status_code == 404


async def test_who_asks_too_often_waits(services: Services) -> None:
    clock = ManualClock()
    security = Security(authenticator=OneToken(), limiter=Limiter(clock, 1, burst=2))
    app = build_app(services, security, ENDPOINTS)
    async with client_of(app, authorization="Bearer right") as client:
        statuses = [(await client.get("/me")).status_code for _ in range(3)]
        refused = await client.get("/me")
        await clock.sleep(1)
        after = await client.get("/me")

    assert (statuses, after.status_code) == ([200, 200, 429], 200)
    assert (refused.headers["retry-after"], refused.json()["code"]) == ("1", "RATE_LIMITED")


async def test_who_guesses_tokens_is_slowed_down(services: Services) -> None:
    security = Security(authenticator=OneToken(), limiter=Limiter(ManualClock(), 1, burst=2))
    async with client_of(build_app(services, security, ENDPOINTS)) as client:
        headers = {"authorization": "Bearer wrong"}
        statuses = [(await client.get("/me", headers=headers)).status_code for _ in range(3)]

    assert statuses == [401, 401, 429]


def test_a_limiter_keeps_a_bounded_number_of_buckets() -> None:
    clock = ManualClock()
    limiter = Limiter(clock, 1, burst=1, buckets_max=10)

    for number in range(100):
        limiter.take(f"somebody {number}")

    assert len(limiter) == 10
    with pytest.raises(RateLimited):
        limiter.take("somebody 99")


async def test_pages_of_named_origins_may_read(services: Services) -> None:
    origin = "https://ops.example.com"
    security = Security(cors_origins=frozenset({origin}))
    async with client_of(build_app(services, security, ENDPOINTS), origin=origin) as client:
        asked = await client.options("/things", headers={"access-control-request-method": "POST"})
        answer = await client.get("/open")
        other = await client.get("/open", headers={"origin": "https://ops.example.com.evil"})

    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, origin)
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (
        origin,
        "Origin",
    )
    assert "access-control-allow-credentials" not in answer.headers
    assert "access-control-allow-origin" not in other.headers


def test_public_routes_are_these_and_no_others() -> None:
    public = {one.path for one in all_endpoints() if one.permission is PUBLIC}

    assert public == {
        "/health",
        "/v1/openapi.json",
        "/docs",
        "/docs/docs.css",
        "/docs/docs.js",
        "/v1/auth/bootstrap",
        "/v1/auth/login",
        "/v1/auth/refresh",
        "/v1/auth/register",
    }


def test_nothing_is_served_that_is_not_declared(app: Application) -> None:
    assert all(isinstance(one, Endpoint) for one in app.endpoints)
    assert all(isinstance(one.permission, Permission | Open) for one in app.endpoints)
    assert not hasattr(app, "mount")


def variants(seed: int, count: int) -> list[bytes]:
    """Paths of declared endpoints, spelled in ways that people try to get around checks."""
    chance = random.Random(seed)
    paths = [one.path.replace("{thing_id}", "7").replace("{number}", "1") for one in ENDPOINTS]
    twists: list[Callable[[str], str]] = [
        lambda text: text.replace("/", "//", 1),
        lambda text: f"{text}/",
        lambda text: f"/.{text}",
        lambda text: f"/open/..{text}",
        lambda text: f"{text};a=b",
        lambda text: f"{text}%00",
        lambda text: f"{text}%2f",
        lambda text: text.upper(),
        lambda text: "".join(f"%{ord(each):02x}" if each != "/" else each for each in text),
        lambda text: quote(quote(text, safe=""), safe="/"),
        lambda text: text.replace("/", "/./"),
        lambda text: text.replace("/", "\\"),
        lambda text: f"{text}%20",
        lambda text: f"{text}.json",
        lambda text: f"http://127.0.0.1{text}",
        lambda text: text[: chance.randrange(len(text)) + 1],
        lambda text: text + chance.choice("abc/%.~:;@"),
    ]
    found = []
    for _ in range(count):
        path = chance.choice(paths)
        for _ in range(chance.randrange(3)):
            path = chance.choice(twists)(path)
        found.append(path.encode("ascii", "replace"))
    return found


async def test_whatever_the_path_looks_like_its_route_decides(services: Services) -> None:
    app = build_app(services, Security(authenticator=OneToken()), ENDPOINTS)
    decided = dict.fromkeys((401, 404, 405), 0)

    for raw in variants(seed=1, count=10_000):
        method = "GET"
        match = app.table.match(raw)
        declared = None if match is None else match.endpoints.get(method)
        if declared is not None and declared.permission is PUBLIC:
            continue  # it runs, for anybody
        status = await status_of(app, method, raw)
        expected = 404 if match is None else 405 if declared is None else 401
        assert status == expected, raw
        decided[status] += 1

    assert all(count > 100 for count in decided.values())


async def status_of(app: Application, method: str, raw_path: bytes) -> int:
    """Ask without any client that would tidy the path up."""
    sent = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": raw_path.decode("ascii"),
        "raw_path": raw_path,
        "query_string": b"",
        "scheme": "http",
        "headers": [],
    }
    await app(scope, receive, send)  # type: ignore[arg-type]
    status = sent[0]["status"]
    assert isinstance(status, int)
    return status
