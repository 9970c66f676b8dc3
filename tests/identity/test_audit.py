"""Point 42: the audit log only grows, tells who did what, and shows when it was changed."""

from __future__ import annotations

import asyncio

import pytest

from tests.identity.stage import PASSWORD, ROOT, House
from tidemill.api.app import build_app
from tidemill.api.security import Security
from tidemill.credentials.sealing import AesSealing
from tidemill.domain.audit import Deed, Head, link
from tidemill.domain.errors import Unavailable
from tidemill.domain.permissions import Permission
from tidemill.engine.identity.audit import verify
from tidemill.ports.store import Store
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.sqlite.store import SqliteStore
from tidemill.stores.tables.identity import Audit

FLOW = {"name": "orders", "tasks": [{"id": "pay", "executor": "noop"}]}


async def actions(house: House) -> list[str]:
    """What the log tells, oldest first."""
    page = await house.got(house.root, "GET", "/v1/audit?everywhere=true&limit=200")
    return [one["action"] for one in reversed(page["items"])]


async def test_point_42_whoever_comes_and_goes_is_told(any_house: House) -> None:
    await any_house.login(ROOT)
    body = {"email": ROOT, "password": "wrong"}
    await any_house.ask("", "POST", "/v1/auth/login", json=body)
    ada = await any_house.user("ada@mill.test", default="viewer")
    await any_house.got(ada, "POST", "/v1/auth/logout")

    told = await actions(any_house)

    assert told == [
        "auth.bootstrap",
        "auth.login",
        "auth.login",
        "user.create",
        "member.set",
        "auth.login",
        "auth.logout",
    ]


async def test_point_42_an_entry_says_who_what_where_and_from_where(house: House) -> None:
    await house.got(house.root, "PUT", "/v1/workflows/orders", json=FLOW)
    run = await house.got(house.root, "POST", "/v1/runs", json={"workflow": "orders"})
    sent = {"X-Request-Id": "my-request"}
    await house.got(house.root, "POST", f"/v1/runs/{run['id']}/cancel", headers=sent)

    entry = (await house.got(house.root, "GET", "/v1/audit?action=run.cancel"))["items"][0]

    me = await house.got(house.root, "GET", "/v1/auth/me")
    assert (entry["actor"], entry["target"], entry["namespace"]) == (me["id"], run["id"], "default")
    assert (entry["address"], entry["request_id"]) == ("10.0.0.1", "my-request")
    assert entry["outcome"] == "done"


async def test_point_42_without_login_it_is_told_too(house: House) -> None:
    house.app = build_app(house.services, Security())

    await house.got("", "PUT", "/v1/workflows/orders", json=FLOW)

    (entry,) = (await house.got("", "GET", "/v1/audit"))["items"]
    assert (entry["action"], entry["actor"], entry["target"]) == (
        "workflow.deploy",
        "single-user",
        "orders",
    )


def test_point_42_whatever_steers_or_changes_says_what_it_is(house: House) -> None:
    changing = {
        Permission.RUNS_CONTROL,
        Permission.DEAD_LETTERS_CONTROL,
        Permission.WORKFLOWS_WRITE,
    }

    silent = [
        f"{one.method} {one.path}"
        for one in house.app.endpoints
        if one.permission in changing and "audit" not in one.facts
    ]

    assert silent == []


async def test_point_42_a_change_of_a_secret_is_told_once(house: House) -> None:
    house.services.sealing = AesSealing(bytes(range(32)), house.identity.entropy)

    await house.got(house.root, "PUT", "/v1/secrets/code", json={"value": "a"})
    await house.got(house.root, "PUT", "/v1/secrets/code", json={"value": "b"})
    await house.got(house.root, "DELETE", "/v1/secrets/code")

    assert (await actions(house))[1:] == ["secret.set", "secret.set", "secret.delete"]


async def test_point_42_a_key_is_told_with_its_reach_and_by_which_key(house: House) -> None:
    first = await house.key(house.root, scopes=["keys:write", "runs:read"])
    await house.key(first, scopes=["runs:read"], expires_in_days=None)

    entry = (await house.got(house.root, "GET", "/v1/audit?action=key.create"))["items"][0]

    me = await house.got(house.root, "GET", "/v1/auth/me")
    assert entry["detail"] == {
        "name": "a key",
        "kind": "api",
        "account": me["id"],
        "scopes": "runs:read",
        "expires": "never",
        "by_key": first.split("_")[1],
    }


async def test_point_42_an_end_that_was_made_anew_is_noticed(any_house: House) -> None:
    for name in ("ada", "bob"):
        body = {"email": f"{name}@mill.test", "password": PASSWORD}
        await any_house.got(any_house.root, "POST", "/v1/users", json=body)
    await open_by_force(any_house.store)
    (first,) = await any_house.store.identity.chain(0, 1)
    await by_hand(any_house.store, "DELETE FROM audit WHERE number > 1")
    forged = [Deed(at=1, actor="a", actor_name="ada", action="x", namespace="*")] * 2

    async with any_house.store.transaction() as tx:
        end = await tx.identity.audit.lock()
        await tx.identity.audit.append(link(Head(number=1, hash=first.hash), forged))
    by_whom = f"UPDATE audit_head SET number = {end.number}, hash = '{end.hash}'"
    await by_hand(any_house.store, by_whom)

    assert (await verify(any_house.store)).broken_at == 3


async def test_point_42_a_refused_request_leaves_no_deed(house: House) -> None:
    before = await actions(house)

    answer = await house.ask(house.root, "POST", "/v1/runs/none/cancel")

    assert answer.status_code == 404
    assert await actions(house) == before


async def test_point_42_the_chain_holds_under_many_at_once(any_house: House) -> None:
    bodies = [{"email": f"user-{n}@mill.test", "password": PASSWORD} for n in range(20)]

    await asyncio.gather(
        *(any_house.ask(any_house.root, "POST", "/v1/users", json=body) for body in bodies)
    )

    verdict = await any_house.got(any_house.root, "GET", "/v1/audit/verify")
    assert (verdict["holds"], verdict["entries"]) == (True, 21)


CHANGES = {
    "an edited row": "UPDATE audit SET actor_name = 'nobody' WHERE number = 2",
    "an unreadable row": "UPDATE audit SET detail = 'x', outcome = 'y' WHERE number = 2",
    "a row gone": "DELETE FROM audit WHERE number = 2",
    "the end gone": "DELETE FROM audit WHERE number = 3",
    "another hash": "UPDATE audit SET hash = previous WHERE number = 2",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_point_42_the_log_refuses_changes_and_shows_those_made_by_force(
    any_house: House, change: str
) -> None:
    for name in ("ada", "bob"):
        body = {"email": f"{name}@mill.test", "password": PASSWORD}
        await any_house.got(any_house.root, "POST", "/v1/users", json=body)
    assert (await verify(any_house.store)).broken_at is None

    with pytest.raises(Exception, match="only grows"):
        await by_hand(any_house.store, CHANGES[change])
    await open_by_force(any_house.store)
    await by_hand(any_house.store, CHANGES[change])

    assert (await verify(any_house.store)).broken_at in {2, 3}


async def open_by_force(store: Store) -> None:
    """Take away what keeps the log from being changed."""
    await by_hand(store, "DROP TRIGGER audit_stays ON audit", postgres_only=True)
    await by_hand(store, "DROP TRIGGER audit_stays", sqlite_only=True)
    await by_hand(store, "DROP TRIGGER audit_stays_whole", sqlite_only=True)


async def by_hand(
    store: Store, text: str, *, postgres_only: bool = False, sqlite_only: bool = False
) -> None:
    """What somebody with the database in their hands can do."""
    if isinstance(store, PostgresStore) and not sqlite_only:
        async with (await store._pool.get()).acquire() as connection:
            await connection.execute(text)
    elif isinstance(store, SqliteStore) and not postgres_only:
        store._writer.raw.execute(text)


async def test_the_log_of_a_namespace_is_for_its_administrators(house: House) -> None:
    await house.namespaces("here")
    boss = await house.user("boss@mill.test", here="admin")
    await house.got(boss, "PUT", "/v1/workflows/orders", json=FLOW)

    own = (await house.got(boss, "GET", "/v1/audit"))["items"]

    assert {one["namespace"] for one in own} == {"here"}
    assert [one["action"] for one in own] == ["workflow.deploy", "member.set"]
    assert (await house.ask(boss, "GET", "/v1/audit?everywhere=true")).status_code == 403


async def test_pages_of_the_log_follow_each_other(house: House) -> None:
    for name in ("ada", "bob", "eve"):
        await house.user(f"{name}@mill.test")
    numbers, after = [], ""

    while after is not None:
        path = f"/v1/audit?everywhere=true&limit=2{after}"
        page = await house.got(house.root, "GET", path)
        numbers += [one["number"] for one in page["items"]]
        after = f"&after={page['next']}" if page["next"] else None  # type: ignore[assignment]

    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 1


async def test_a_deed_that_the_store_cannot_take_is_in_the_log_of_the_process(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(_self: Audit) -> Head:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(Audit, "lock", full)

    deployed = await house.ask(house.root, "PUT", "/v1/workflows/orders", json=FLOW)

    assert deployed.is_success
    assert "workflow.deploy" in caplog.text
