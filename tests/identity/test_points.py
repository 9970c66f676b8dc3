"""What must hold about routes, tokens and roles, by its number in docs/identity.md."""

from __future__ import annotations

import inspect
import logging
import sqlite3
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

from tests.identity.samples import body_of, path_of, status_of
from tests.identity.stage import PASSWORD, ROOT, Clock, House, opened_house
from tidemill.api.routing import PUBLIC
from tidemill.domain.errors import InvalidInput
from tidemill.domain.identity import KeyKind, Registration
from tidemill.domain.identity_rules import KNOWN_PASSWORDS
from tidemill.domain.permissions import Role
from tidemill.domain.principals import SINGLE_USER
from tidemill.engine.identity.accounts import Person, create_user
from tidemill.engine.identity.bootstrap import prepare_bootstrap
from tidemill.engine.identity.context import Caller
from tidemill.engine.identity.keys import KeyWish, create_key
from tidemill.ports.identity import TASK
from tidemill.ports.reading import Reader
from tidemill.ports.store import Store
from tidemill.stores.sqlite.store import SqliteStore

OTHER = "another mill, another tide"


async def test_point_01_every_route_but_the_public_ones_wants_credentials(house: House) -> None:
    for one in house.app.endpoints:
        status = await status_of(house.app, one.method, path_of(one), body=body_of(one))
        assert (status == 401) or one.permission is PUBLIC, f"{one.method} {one.path}: {status}"


async def test_point_03_nobody_is_there_at_the_first_start(
    memory_store: Store, clock: Clock
) -> None:
    async with opened_house(memory_store, clock) as house:
        tried = [("admin", "admin"), ("admin@localhost", "admin"), ("root@localhost", "password")]
        tried += [("admin@tidemill", password) for password in sorted(KNOWN_PASSWORDS)[:5]]
        for email, password in tried:
            body = {"email": email, "password": password}
            assert (await house.ask("", "POST", "/v1/auth/login", json=body)).status_code == 401


async def test_point_03_the_bootstrap_token_works_once(memory_store: Store, clock: Clock) -> None:
    async with opened_house(memory_store, clock) as house:
        token = await prepare_bootstrap(memory_store, house.identity.entropy, None)
        body = {"token": token, "email": ROOT, "password": PASSWORD}
        wrong = {**body, "token": "tmb_guess"}

        statuses = [
            (await house.ask("", "POST", "/v1/auth/bootstrap", json=each)).status_code
            for each in (wrong, body, body)
        ]

        assert statuses == [403, 201, 409]
        assert await prepare_bootstrap(memory_store, house.identity.entropy, None) is None


async def test_point_03_a_given_bootstrap_token_is_long_enough(
    memory_store: Store, clock: Clock
) -> None:
    async with opened_house(memory_store, clock) as house:
        entropy = house.identity.entropy
        with pytest.raises(InvalidInput, match="TIDEMILL_BOOTSTRAP_TOKEN"):
            await prepare_bootstrap(memory_store, entropy, "changeme")

        assert await prepare_bootstrap(memory_store, entropy, "x7" * 16) == "x7" * 16


async def test_point_06_a_refresh_token_that_comes_twice_ends_the_login(any_house: House) -> None:
    first = await any_house.login(ROOT)
    old = {"refresh_token": first["refresh_token"]}
    second = await any_house.got("", "POST", "/v1/auth/refresh", json=old)

    replayed = await any_house.ask("", "POST", "/v1/auth/refresh", json=old)

    assert replayed.status_code == 401
    new = {"refresh_token": second["refresh_token"]}
    assert (await any_house.ask("", "POST", "/v1/auth/refresh", json=new)).status_code == 401
    assert (await any_house.ask(second["access_token"], "GET", "/v1/auth/me")).status_code == 401


async def test_point_06_a_disabled_user_is_out_with_the_next_request(any_house: House) -> None:
    ada = await any_house.user("ada@mill.test", default="admin")
    key = await any_house.key(ada)
    user = (await any_house.got(ada, "GET", "/v1/auth/me"))["id"]

    await any_house.got(any_house.root, "PATCH", f"/v1/users/{user}", json={"disabled": True})

    for credential in (ada, key):
        assert (await any_house.ask(credential, "GET", "/v1/auth/me")).status_code == 401
    body = {"email": "ada@mill.test", "password": PASSWORD}
    assert (await any_house.ask("", "POST", "/v1/auth/login", json=body)).status_code == 401


async def test_point_06_revocation_holds_in_every_process(any_store: Store, clock: Clock) -> None:
    async with opened_house(any_store, clock) as one, opened_house(any_store, clock) as two:
        await one.bootstrap()
        two.root = one.root
        key = await one.key(one.root)
        assert await two.got(key, "GET", "/v1/auth/me")

        await one.got(one.root, "DELETE", f"/v1/keys/{key.split('_')[1]}")
        await one.got(one.root, "POST", "/v1/auth/logout")

        for credential in (key, one.root):
            assert (await two.ask(credential, "GET", "/v1/auth/me")).status_code == 401


async def test_point_07_a_copy_of_the_database_opens_nothing(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "mill.db"
    store = SqliteStore(str(path), clock)
    await store.migrate()
    async with opened_house(store, clock, Registration.INVITATION) as house:
        secrets = [await house.bootstrap(), (await house.login(ROOT))["refresh_token"], PASSWORD]
        secrets += [await house.key(house.root)]
        invited = await house.got(house.root, "POST", "/v1/invitations", json={"role": "viewer"})
        secrets += [invited["secret"]]
        dump = "\n".join(sqlite3.connect(path).iterdump())
    await store.close()

    # Of credentials in parts, the last one is the secret.
    parts = [one.split("_")[-1] if one.startswith("tm") else one.split(".")[-1] for one in secrets]
    assert [part for part in parts if part[:64] in dump] == []
    assert "$argon2id$" in dump


async def test_point_07_a_key_does_what_its_scopes_say_and_nothing_else(house: House) -> None:
    key = await house.key(house.root, scopes=["runs:read"])

    assert (await house.ask(key, "GET", "/v1/runs")).status_code == 200
    for path in ("/v1/workflows", "/v1/keys", "/v1/members", "/v1/audit", "/v1/users"):
        assert (await house.ask(key, "GET", path)).status_code == 403, path
    assert (await house.ask(key, "POST", "/v1/jobs", json={"type": "noop"})).status_code == 403


async def test_point_07_a_key_makes_no_key_that_can_do_more(house: House) -> None:
    key = await house.key(house.root, scopes=["keys:write", "runs:read"])

    more = {"name": "more", "scopes": ["runs:control"]}
    refused = await house.ask(key, "POST", "/v1/keys", json=more)
    same = await house.got(key, "POST", "/v1/keys", json={"name": "same"})

    assert refused.status_code == 403
    assert same["key"]["scopes"] == ["keys:write", "runs:read"]
    made = await house.ask(key, "POST", "/v1/service-accounts", json={"name": "x", "role": "admin"})
    assert made.status_code == 403


async def test_point_07_the_use_of_a_key_is_noted_at_most_once_a_minute(
    house: House, clock: Clock
) -> None:
    key = await house.key(house.root)
    seen = set()

    for seconds in (0, 30, 29, 2):
        clock.moment += seconds * 1_000_000
        await house.got(key, "GET", "/v1/auth/me")
        seen.add((await house.got(house.root, "GET", "/v1/keys"))["items"][0]["last_used_at"])

    assert len(seen) == 2


async def test_point_08_a_hundred_tries_in_a_minute_are_too_many(any_house: House) -> None:
    statuses = []
    for number in range(100):
        body = {"email": f"user-{number}@mill.test", "password": "wrong"}
        statuses.append((await any_house.ask("", "POST", "/v1/auth/login", json=body)).status_code)

    assert statuses.count(401) <= 60
    assert statuses[-1] == 429


async def test_point_08_one_address_is_locked_out_of_one_account(
    any_house: House, clock: Clock
) -> None:
    wrong = {"email": ROOT, "password": "wrong"}
    for _ in range(5):
        await any_house.ask("", "POST", "/v1/auth/login", json=wrong)
    right = {"email": ROOT, "password": PASSWORD}

    here = await any_house.ask("", "POST", "/v1/auth/login", json=right)
    elsewhere = await any_house.ask(
        "", "POST", "/v1/auth/login", json=right, headers={"address": "10.0.0.2"}
    )

    assert (here.status_code, elsewhere.status_code) == (429, 200)
    assert int(here.headers["retry-after"]) <= 30
    clock.moment += 31 * 1_000_000
    assert (await any_house.ask("", "POST", "/v1/auth/login", json=right)).status_code == 200


async def test_point_08_an_unknown_user_costs_the_same_work(house: House) -> None:
    await house.user("ada@mill.test")
    hasher, work = house.identity.hasher, []

    for email in ("ada@mill.test", "nobody@mill.test", "no address"):
        before = hasher.verified  # type: ignore[attr-defined]
        body = {"email": email, "password": "wrong"}
        answer = await house.ask("", "POST", "/v1/auth/login", json=body)
        work.append((hasher.verified - before, answer.json()["detail"]))  # type: ignore[attr-defined]

    assert len(set(work)) == 1
    assert work[0][0] == 1


async def test_point_09_credentials_of_workers_and_tasks_open_no_route(house: House) -> None:
    caller = Caller(principal=SINGLE_USER, namespace="default")
    wish = KeyWish(name="worker", kind=KeyKind.WORKER, queues=("default",))
    _, worker = await create_key(house.identity, caller, wish)
    task = house.identity.signer.sign(TASK, "run/0/1", 60)
    guarded = [one for one in house.app.endpoints if one.permission is not PUBLIC]

    for one, credential in product(guarded, (worker, task)):
        headers = {"Authorization": f"Bearer {credential}"}
        status = await status_of(
            house.app, one.method, path_of(one), headers=headers, body=body_of(one)
        )
        assert status == 403, f"{one.method} {one.path}: {status}"


async def test_point_10_a_credential_in_the_address_counts_for_nothing(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tidemill")

    for name in ("access_token", "token", "key", "authorization"):
        answer = await house.ask("", "GET", f"/v1/auth/me?{name}={house.root}")
        assert answer.status_code == 401

    assert house.root not in caplog.text


@pytest.mark.parametrize("scheme", ["Basic", "Token", "bearerx", ""])
async def test_point_10_only_bearer_credentials_are_read(house: House, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {house.root}".strip()}

    assert (await house.ask("", "GET", "/v1/auth/me", headers=headers)).status_code == 401


OF_ALL_NAMESPACES = {"events_after", "events_floor", "events_head"}
"""The outbox is one for all: api/following.py tells each reader what is of their namespace."""


def test_point_13_nothing_is_read_without_a_namespace() -> None:
    without = {
        name
        for name, verb in inspect.getmembers(Reader, inspect.isfunction)
        if not name.startswith("_") and not _takes_namespace(verb)
    }

    assert without == OF_ALL_NAMESPACES


def _takes_namespace(verb: Callable[..., object]) -> bool:
    hints = get_type_hints(verb)
    names = [name for name in inspect.signature(verb).parameters if name != "self"]
    first = names[0] if names else ""
    if first == "query":  # its namespace has no default either
        return "namespace" in {
            field.name for field in msgspec.structs.fields(hints["query"]) if field.required
        }
    return first == "namespace"


async def test_point_15_an_inner_namespace_is_refused(house: House) -> None:
    await house.namespaces("here", "there")
    editor = await house.user("ed@mill.test", here="editor")
    definition = {"name": "x", "tasks": [{"id": "a", "executor": "noop"}]}
    asked = {"workflow": "x", "namespace": "there"}
    nested = {"definition": {**definition, "namespace": "there"}}

    for body in (asked, nested):
        answer = await house.ask(editor, "POST", "/v1/runs", json=body)
        assert answer.status_code == 400
        assert "namespace" in answer.text


async def test_point_16_a_new_role_holds_with_the_next_request(any_house: House) -> None:
    ada = await any_house.user("ada@mill.test", default="viewer")
    user = (await any_house.got(ada, "GET", "/v1/auth/me"))["id"]
    statuses = []

    for role in ("admin", "viewer", None):
        where = f"/v1/members/{user}"
        if role is None:
            await any_house.got(any_house.root, "DELETE", where)
        else:
            await any_house.got(any_house.root, "PUT", where, json={"role": role})
        statuses.append((await any_house.ask(ada, "GET", "/v1/keys")).status_code)

    assert statuses == [200, 403, 403]
    assert (await any_house.ask(ada, "GET", "/v1/runs")).status_code == 403


SERVER_OWNED = ("id", "state", "namespace", "epoch", "created_by", "created_at", "kind", "roles")


async def test_point_17_fields_of_the_server_cannot_be_sent(house: House) -> None:
    taking = [one for one in house.app.endpoints if one.body and body_of(one)[:1] == b"{"]
    cases = [pair for pair in product(taking, SERVER_OWNED) if pair[1] not in _fields(pair[0].body)]

    for one, name in cases:
        sent = {**msgspec.json.decode(body_of(one)), name: "x"}
        status = await status_of(
            house.app,
            one.method,
            path_of(one),
            headers={"Authorization": f"Bearer {house.root}"},
            body=msgspec.json.encode(sent),
        )
        assert status == 400, f"{one.method} {one.path} {name}: {status}"

    assert len(cases) > 100


def _fields(kind: object) -> tuple[str, ...]:
    return tuple(getattr(kind, "__struct_encode_fields__", ()))


async def test_point_18_who_may_only_start_cannot_bring_code_along(house: House) -> None:
    await house.namespaces("here")
    operator = await house.user("op@mill.test", here="operator")
    definition = {"name": "x", "tasks": [{"id": "a", "executor": "noop"}]}

    brought = await house.ask(operator, "POST", "/v1/runs", json={"definition": definition})
    assert brought.status_code == 403
    deployed = await house.ask(operator, "PUT", "/v1/workflows/x", json=definition)
    assert deployed.status_code == 403
    for field in ("queue", "executor", "env", "image", "params"):
        body = {"workflow": "x", field: "other"}
        answer = await house.ask(operator, "POST", "/v1/runs", json=body)
        assert answer.status_code == 400, field


async def test_point_03_where_an_administrator_was_made_in_another_way_there_is_no_bootstrap(
    memory_store: Store, clock: Clock
) -> None:
    async with opened_house(memory_store, clock) as house:
        token = await prepare_bootstrap(memory_store, house.identity.entropy, None)
        caller = Caller(principal=SINGLE_USER)
        person = Person(email=ROOT, password=PASSWORD)
        await create_user(house.identity, caller, person, Role.ADMIN)

        body = {"token": token, "email": "eve@mill.test", "password": PASSWORD}
        answer = await house.ask("", "POST", "/v1/auth/bootstrap", json=body)

        assert answer.status_code == 409
        assert await prepare_bootstrap(memory_store, house.identity.entropy, None) is None
