"""Users, members, invitations, namespaces: who may make whom what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.identity.stage import PASSWORD, ROOT, Clock, House, opened_house
from tidemill.api.app import build_app
from tidemill.api.security import Security
from tidemill.domain.identifiers import SECOND
from tidemill.domain.identity import Registration
from tidemill.ports.store import Store

ADA: dict[str, Any] = {"email": "Ada@Mill.Test", "password": PASSWORD, "name": "Ada"}


async def test_a_user_is_made_shown_and_listed(any_house: House) -> None:
    made = await any_house.got(any_house.root, "POST", "/v1/users", json=ADA)

    shown = await any_house.got(any_house.root, "GET", f"/v1/users/{made['id']}")

    assert (shown["email"], shown["name"], shown["roles"]) == ("ada@mill.test", "Ada", {})
    listed = await any_house.got(any_house.root, "GET", "/v1/users?limit=1")
    following = await any_house.got(any_house.root, "GET", f"/v1/users?after={listed['next']}")
    emails = [one["email"] for page in (listed, following) for one in page["items"]]
    assert emails == [ROOT, "ada@mill.test"]


async def test_the_list_of_users_tells_who_administers(any_house: House) -> None:
    await any_house.namespaces("here", "there")
    await any_house.user("ada@mill.test", here="viewer", there="editor")
    body = {"email": "bob@mill.test", "password": PASSWORD, "role": "viewer"}
    bob = await any_house.got(any_house.root, "POST", "/v1/users", json=body)
    body = {"role": "operator"}
    changed = await any_house.got(any_house.root, "PATCH", f"/v1/users/{bob['id']}", json=body)
    await any_house.user("eve@mill.test")

    listed = await any_house.got(any_house.root, "GET", "/v1/users")

    assert [(one["email"], one["roles"]) for one in listed["items"]] == [
        (ROOT, {"*": "admin"}),
        ("ada@mill.test", {"here": "viewer", "there": "editor"}),
        ("bob@mill.test", {"*": "operator"}),
        ("eve@mill.test", {}),
    ]
    assert (bob["roles"], changed["roles"]) == ({"*": "viewer"}, {"*": "operator"})


async def test_an_address_is_taken_once_in_any_case(any_house: House) -> None:
    answers = await asyncio.gather(
        *(any_house.ask(any_house.root, "POST", "/v1/users", json=ADA) for _ in range(3))
    )

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]


async def test_the_last_administrator_stays(any_house: House) -> None:
    root = (await any_house.got(any_house.root, "GET", "/v1/auth/me"))["id"]

    for body in ({"disabled": True}, {"role": None}, {"role": "viewer"}):
        answer = await any_house.ask(any_house.root, "PATCH", f"/v1/users/{root}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "LAST_ADMIN")


async def test_a_new_password_from_an_administrator_ends_the_logins(house: House) -> None:
    ada = await house.user("ada@mill.test")
    user = (await house.got(ada, "GET", "/v1/auth/me"))["id"]
    body = {"password": "given by somebody"}

    await house.got(house.root, "PATCH", f"/v1/users/{user}", json=body)

    assert (await house.ask(ada, "GET", "/v1/auth/me")).status_code == 401
    assert await house.login("ada@mill.test", "given by somebody")


async def test_an_administrator_of_a_namespace_rules_there_and_nowhere_else(house: House) -> None:
    await house.namespaces("here", "there")
    boss = await house.user("boss@mill.test", here="admin")
    await house.user("ada@mill.test")
    body = {"email": "ada@mill.test", "role": "admin"}

    here = await house.ask(boss, "POST", "/v1/members", json=body)
    there = await house.ask(boss, "POST", "/v1/members", json=body, namespace="there")
    everywhere = await house.ask(boss, "POST", "/v1/members", json=body, namespace="*")

    assert (here.status_code, there.status_code) == (200, 403)
    assert everywhere.status_code in {400, 403}
    assert (await house.ask(boss, "GET", "/v1/users")).status_code == 403


async def test_members_are_listed_page_by_page(house: House) -> None:
    for name in ("ada", "bob", "eve"):
        await house.user(f"{name}@mill.test", default="viewer")

    first = await house.got(house.root, "GET", "/v1/members?limit=2")
    second = await house.got(house.root, "GET", f"/v1/members?limit=2&after={first['next']}")

    names = [one["name"] for one in (*first["items"], *second["items"])]
    assert names == ["ada", "bob", "eve"]
    assert second["next"] is None


async def test_registration_is_off_unless_somebody_turns_it_on(house: House) -> None:
    answer = await house.ask("", "POST", "/v1/auth/register", json=ADA)

    assert (answer.status_code, answer.json()["code"]) == (403, "REGISTRATION_OFF")


async def test_nobody_is_invited_where_nobody_can_register(house: House) -> None:
    answer = await house.ask(house.root, "POST", "/v1/invitations", json={"role": "operator"})

    assert (answer.status_code, answer.json()["code"]) == (409, "REGISTRATION_OFF")
    assert "--registration invitation" in answer.json()["detail"]
    assert (await house.got(house.root, "GET", "/v1/invitations"))["items"] == []


async def test_who_registers_where_it_is_open_has_no_role(
    memory_store: Store, clock: Clock
) -> None:
    async with opened_house(memory_store, clock, Registration.OPEN) as house:
        await house.bootstrap()
        await house.got("", "POST", "/v1/auth/register", json=ADA)
        ada = (await house.login("ada@mill.test"))["access_token"]

        assert (await house.got(ada, "GET", "/v1/auth/me"))["roles"] == {}
        assert (await house.ask(ada, "GET", "/v1/runs")).status_code == 403


async def test_an_invitation_works_once_and_brings_its_role(any_store: Store, clock: Clock) -> None:
    async with opened_house(any_store, clock, Registration.INVITATION) as house:
        await house.bootstrap()
        made = await house.got(house.root, "POST", "/v1/invitations", json={"role": "operator"})
        body = {**ADA, "invitation": made["secret"]}

        first = await house.ask("", "POST", "/v1/auth/register", json=body)
        again = {**body, "email": "eve@mill.test"}
        second = await house.ask("", "POST", "/v1/auth/register", json=again)

        assert (first.status_code, second.status_code) == (201, 403)
        ada = (await house.login("ada@mill.test"))["access_token"]
        assert (await house.got(ada, "GET", "/v1/auth/me"))["roles"] == {"default": "operator"}


async def test_an_invitation_for_one_address_expires_and_can_be_taken_back(
    memory_store: Store, clock: Clock
) -> None:
    async with opened_house(memory_store, clock, Registration.INVITATION) as house:
        await house.bootstrap()
        wanted = {"role": "viewer", "email": "ada@mill.test"}
        made = [await house.got(house.root, "POST", "/v1/invitations", json=wanted) for _ in "123"]
        where = f"/v1/invitations/{made[1]['invitation']['id']}"
        await house.got(house.root, "DELETE", where)

        bodies = [
            {**ADA, "email": "eve@mill.test", "invitation": made[0]["secret"]},
            {**ADA, "invitation": made[1]["secret"]},
            {**ADA, "invitation": "tmi_made_up"},
            ADA,
        ]
        for body in bodies:
            assert (await house.ask("", "POST", "/v1/auth/register", json=body)).status_code == 403
        clock.moment += 8 * 24 * 3_600 * SECOND
        late = {**ADA, "invitation": made[2]["secret"]}
        assert (await house.ask("", "POST", "/v1/auth/register", json=late)).status_code == 403


async def test_a_namespace_is_made_once_and_has_a_default_executor(any_house: House) -> None:
    body = {"name": "team-7", "default_executor": "compute"}
    await any_house.got(any_house.root, "POST", "/v1/namespaces", json=body)

    again = await any_house.ask(any_house.root, "POST", "/v1/namespaces", json=body)
    changed = await any_house.got(
        any_house.root, "PATCH", "/v1/namespaces/team-7", json={"default_executor": None}
    )

    assert (again.status_code, again.json()["code"]) == (409, "ALREADY_EXISTS")
    assert changed["default_executor"] is None
    shown = await any_house.got(any_house.root, "GET", "/v1/namespaces/team-7")
    assert shown["default_executor"] is None


STRANGE = ("%00", "%F0%9F%92%A9", "..", "a" * 300, "%C3%28")


@pytest.mark.parametrize("text", STRANGE)
async def test_an_id_that_nothing_can_have_is_not_found(any_house: House, text: str) -> None:
    root = any_house.root
    for method, path in (
        ("GET", f"/v1/users/{text}"),
        ("GET", f"/v1/namespaces/{text}"),
        ("DELETE", f"/v1/keys/{text}"),
        ("DELETE", f"/v1/members/{text}"),
        ("DELETE", f"/v1/service-accounts/{text}"),
        ("DELETE", f"/v1/invitations/{text}"),
    ):
        answer = await any_house.ask(root, method, path)
        assert answer.status_code in {400, 404, 405}, f"{path}: {answer.status_code}"


async def test_a_text_that_no_database_takes_is_no_login(any_house: House) -> None:
    for email in ("a\0b@mill.test", "\ud7ff", "x" * 254):
        body = {"email": email, "password": "\0"}
        assert (await any_house.ask("", "POST", "/v1/auth/login", json=body)).status_code == 401


async def test_a_key_is_made_for_somebody_of_the_same_namespace(house: House) -> None:
    await house.namespaces("here")
    body = {"name": "robot", "role": "viewer"}
    robot = await house.got(house.root, "POST", "/v1/service-accounts", json=body)
    wanted = {"name": "key", "service_account": robot["id"]}

    there = await house.ask(house.root, "POST", "/v1/keys", json=wanted, namespace="here")

    assert there.status_code == 404


async def test_without_login_keys_are_for_service_accounts(house: House) -> None:
    house.app = build_app(house.services, Security())

    answer = await house.ask("", "POST", "/v1/keys", json={"name": "key"})

    assert (answer.status_code, answer.json()["code"]) == (409, "NO_ACCOUNT")


@pytest.mark.parametrize("change", [{"disabled": True}, {"role": None}, {"role": "editor"}])
async def test_who_may_invite_no_longer_has_invited_nobody(
    any_store: Store, clock: Clock, change: dict[str, object]
) -> None:
    async with opened_house(any_store, clock, Registration.INVITATION) as house:
        await house.bootstrap()
        body = {"email": "ada@mill.test", "password": PASSWORD, "role": "admin"}
        ada = await house.got(house.root, "POST", "/v1/users", json=body)
        hers = (await house.login("ada@mill.test"))["access_token"]
        made = await house.got(hers, "POST", "/v1/invitations", json={"role": "admin"})

        await house.got(house.root, "PATCH", f"/v1/users/{ada['id']}", json=change)

        body = {"email": "eve@mill.test", "password": PASSWORD, "invitation": made["secret"]}
        answer = await house.ask("", "POST", "/v1/auth/register", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "INVITATION_INVALID")


async def test_where_nobody_administers_yet_users_can_be_changed(
    memory_store: Store, clock: Clock
) -> None:
    async with opened_house(memory_store, clock) as house:
        house.app = build_app(house.services, Security())
        body = {"email": "ada@mill.test", "password": PASSWORD}
        ada = await house.got("", "POST", "/v1/users", json=body)

        changed = await house.got("", "PATCH", f"/v1/users/{ada['id']}", json={"disabled": True})

    assert changed["disabled"]


async def test_nobody_is_given_their_address_as_a_password(house: House) -> None:
    await house.user("ada.lovelace@mill.test")
    ada = (await house.login("ada.lovelace@mill.test"))["user"]["id"]

    body = {"password": "Ada.Lovelace@mill.test"}
    answer = await house.ask(house.root, "PATCH", f"/v1/users/{ada}", json=body)

    assert answer.json()["code"] == "KNOWN_PASSWORD"


async def test_who_is_out_while_a_password_is_hashed_makes_nobody(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"email": "ada@mill.test", "password": PASSWORD, "role": "admin"}
    ada = await house.got(house.root, "POST", "/v1/users", json=body)
    hers = (await house.login("ada@mill.test"))["access_token"]
    slowly = house.identity.hasher.hash

    async def hash_late(password: str) -> str:
        await house.got(house.root, "PATCH", f"/v1/users/{ada['id']}", json={"disabled": True})
        return await slowly(password)

    monkeypatch.setattr(house.identity.hasher, "hash", hash_late)
    answer = await house.ask(hers, "POST", "/v1/users", json={**body, "email": "back@mill.test"})

    assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")
