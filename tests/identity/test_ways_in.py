"""Becoming known, on every store: bootstrap, login, refresh, logout, passwords, keys."""

from __future__ import annotations

import asyncio

import pytest

from tests.identity.stage import PASSWORD, ROOT, Clock, House, opened_house
from tidemill.domain.identifiers import SECOND
from tidemill.engine.identity.attempts import place_of
from tidemill.engine.identity.bootstrap import prepare_bootstrap
from tidemill.ports.store import Store


async def test_who_logs_in_is_known(any_house: House) -> None:
    tokens = await any_house.login(ROOT)

    me = await any_house.got(tokens["access_token"], "GET", "/v1/auth/me")

    assert me["kind"] == "user"
    assert me["roles"] == {"*": "admin"}
    assert tokens["expires_in"] <= 15 * 60


async def test_of_two_who_bootstrap_at_once_one_wins(any_store: Store, clock: Clock) -> None:
    async with opened_house(any_store, clock) as house:
        token = await prepare_bootstrap(any_store, house.identity.entropy, None)
        bodies = [
            {"token": token, "email": f"{name}@mill.test", "password": PASSWORD}
            for name in ("one", "two")
        ]

        answers = await asyncio.gather(
            *(house.ask("", "POST", "/v1/auth/bootstrap", json=body) for body in bodies)
        )

        assert sorted(answer.status_code for answer in answers) == [201, 409]


async def test_a_refresh_token_gives_the_next_pair(any_house: House) -> None:
    first = await any_house.login(ROOT)

    second = await any_house.got(
        "", "POST", "/v1/auth/refresh", json={"refresh_token": first["refresh_token"]}
    )

    assert second["refresh_token"] != first["refresh_token"]
    assert await any_house.got(second["access_token"], "GET", "/v1/auth/me")


async def test_logging_out_ends_the_access_token_at_once(any_house: House) -> None:
    tokens = await any_house.login(ROOT)
    token = tokens["access_token"]

    await any_house.got(token, "POST", "/v1/auth/logout")

    assert (await any_house.ask(token, "GET", "/v1/auth/me")).status_code == 401
    body = {"refresh_token": tokens["refresh_token"]}
    assert (await any_house.ask("", "POST", "/v1/auth/refresh", json=body)).status_code == 401


async def test_a_new_password_ends_the_other_logins(any_house: House) -> None:
    here, elsewhere = await any_house.login(ROOT), await any_house.login(ROOT)
    body = {"current": PASSWORD, "new": "another mill, another tide"}

    await any_house.got(here["access_token"], "POST", "/v1/auth/password", json=body)

    assert (await any_house.ask(here["access_token"], "GET", "/v1/auth/me")).status_code == 200
    old = await any_house.ask(elsewhere["access_token"], "GET", "/v1/auth/me")
    assert old.status_code == 401
    assert await any_house.login(ROOT, "another mill, another tide")


async def test_a_key_does_what_its_account_may_and_notes_when(any_house: House) -> None:
    key = await any_house.key(any_house.root, expires_in_days=1)

    me = await any_house.got(key, "GET", "/v1/auth/me")

    assert (me["kind"], me["namespace"], me["roles"]) == ("key", "default", {"default": "admin"})
    (listed,) = (await any_house.got(any_house.root, "GET", "/v1/keys"))["items"]
    assert listed["last_used_at"] is not None
    assert key not in str(listed)


async def test_a_key_that_expired_or_was_revoked_opens_nothing(
    any_house: House, clock: Clock
) -> None:
    short, revoked = [await any_house.key(any_house.root, expires_in_days=1) for _ in "12"]
    key_id = revoked.split("_")[1]

    await any_house.got(any_house.root, "DELETE", f"/v1/keys/{key_id}")

    assert (await any_house.ask(revoked, "GET", "/v1/auth/me")).status_code == 401
    clock.moment += 24 * 3_600 * SECOND
    assert (await any_house.ask(short, "GET", "/v1/auth/me")).status_code == 401


async def test_a_service_account_comes_in_with_its_key_until_it_is_disabled(
    any_house: House,
) -> None:
    body = {"name": "deployer", "role": "editor"}
    made = await any_house.got(any_house.root, "POST", "/v1/service-accounts", json=body)
    key = await any_house.key(any_house.root, service_account=made["id"])
    assert (await any_house.got(key, "GET", "/v1/auth/me"))["kind"] == "service"

    await any_house.got(any_house.root, "DELETE", f"/v1/service-accounts/{made['id']}")

    assert (await any_house.ask(key, "GET", "/v1/auth/me")).status_code == 401


async def test_a_refresh_token_that_is_used_twice_at_once_ends_the_login(any_house: House) -> None:
    tokens = await any_house.login(ROOT)
    body = {"refresh_token": tokens["refresh_token"]}

    answers = await asyncio.gather(
        *(any_house.ask("", "POST", "/v1/auth/refresh", json=body) for _ in range(3))
    )

    assert sorted(answer.status_code for answer in answers) == [200, 401, 401]
    (won,) = [answer.json() for answer in answers if answer.is_success]
    assert (await any_house.ask(won["access_token"], "GET", "/v1/auth/me")).status_code == 401


async def test_tries_at_the_same_time_are_all_counted(any_house: House) -> None:
    bodies = [{"email": f"user-{n}@mill.test", "password": "wrong"} for n in range(80)]

    answers = await asyncio.gather(
        *(any_house.ask("", "POST", "/v1/auth/login", json=body) for body in bodies)
    )

    statuses = [answer.status_code for answer in answers]
    assert statuses.count(401) <= 60
    assert 429 in statuses


async def test_whoever_logs_in_is_named_in_the_log(any_house: House) -> None:
    await any_house.login(ROOT)

    me = await any_house.got(any_house.root, "GET", "/v1/auth/me")
    path = "/v1/audit?everywhere=true&action=auth.login"
    (entry,) = (await any_house.got(any_house.root, "GET", path))["items"]

    assert (entry["actor"], entry["target"]) == (me["id"], ROOT)


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_whoever_has_a_network_of_addresses_is_counted_as_one(address: str, place: str) -> None:
    assert place_of(address) == place


async def test_a_password_set_by_an_administrator_is_not_overwritten_by_one_under_way(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve = await house.user("ada@mill.test")
    ada = (await house.login("ada@mill.test"))["user"]["id"]
    slowly = house.identity.hasher.hash

    async def hash_late(password: str) -> str:
        monkeypatch.undo()
        reset = {"password": "set by the administrator"}
        await house.got(house.root, "PATCH", f"/v1/users/{ada}", json=reset)
        return await slowly(password)

    monkeypatch.setattr(house.identity.hasher, "hash", hash_late)
    body = {"current": PASSWORD, "new": "chosen by somebody else"}
    answer = await house.ask(eve, "POST", "/v1/auth/password", json=body)

    assert answer.json()["code"] == "WRONG_PASSWORD"
    assert await house.login("ada@mill.test", "set by the administrator")
