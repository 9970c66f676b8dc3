"""Point 12: whatever one namespace has is not there for another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.identity.samples import body_of, path_of, status_of
from tests.identity.stage import Clock, House, opened_house
from tidemill.api.cursors import NameCursor, encode_cursor
from tidemill.api.routing import Endpoint
from tidemill.domain.identity import Registration
from tidemill.domain.permissions import Permission
from tidemill.ports.store import Store

FLOW = {"name": "orders", "tasks": [{"id": "pay", "executor": "noop"}]}


@pytest.fixture
async def house(memory_store: Store, clock: Clock) -> AsyncIterator[House]:
    """The application with its first administrator, who may invite others."""
    async with opened_house(memory_store, clock, Registration.INVITATION) as made:
        await made.bootstrap()
        yield made


async def furnish(house: House) -> dict[str, str]:
    """One of everything in namespace `here`; ids by the names that paths give them."""
    await house.namespaces("here", "there")
    ask: dict[str, Any] = {"namespace": "here"}
    root = house.root
    await house.got(root, "PUT", "/v1/workflows/orders", json=FLOW, **ask)
    run = await house.got(root, "POST", "/v1/runs", json={"workflow": "orders"}, **ask)
    job = await house.got(root, "POST", "/v1/jobs", json={"type": "noop"}, **ask)
    dag = {"workflowId": "dag-of-here", "tasks": [{"taskId": "a"}]}
    await house.got(root, "POST", "/workflows", json=dag, **ask)
    draft = await house.got(root, "POST", "/api/workflows", json={"name": "draft"}, **ask)
    body = {"name": "robot", "role": "viewer"}
    robot = await house.got(root, "POST", "/v1/service-accounts", json=body, **ask)
    key = await house.key(root, "here")
    guest = await house.got(root, "POST", "/v1/invitations", json={"role": "viewer"}, **ask)
    return {
        "name": "orders",
        "number": "1",
        "run_id": run["id"],
        "task": "pay",
        "job_id": job["id"],
        "chain_id": run["id"],
        "workflow_id": draft["id"],
        "account_id": robot["id"],
        "key_id": key.split("_")[1],
        "invitation_id": guest["invitation"]["id"],
    }


def _is_about_one_thing(one: Endpoint) -> bool:
    made = one.method == "PUT" and "{name}" in one.path  # a name of one's own namespace
    return bool(one.parameters) and isinstance(one.permission, Permission) and not made


async def _replayed(
    house: House, token: str, namespace: str, ids: dict[str, str], method: str | None = None
) -> dict[str, int]:
    headers = {"Authorization": f"Bearer {token}", "Tidemill-Namespace": namespace}
    found = {}
    for one in filter(_is_about_one_thing, house.app.endpoints):
        if method in {None, one.method}:
            path = path_of(one, **ids)
            found[f"{one.method} {one.path}"] = await status_of(
                house.app, one.method, path, headers=headers, body=body_of(one)
            )
    return found


FOR_THE_SYSTEM = ("/v1/users", "/v1/namespaces", "/v1/invitations")
ANY_NAME_CAN_BE_FOLLOWED = "GET /v1/workflows/{name}/events"


async def test_point_12_what_is_of_another_namespace_is_not_there(house: House) -> None:
    ids = await furnish(house)
    there = await house.user("eve@mill.test", there="admin")

    found = await _replayed(house, there, "there", ids)

    assert found == await _replayed(house, there, "there", {})  # the same as what never was
    system = {name for name in found if name.split()[1].startswith(FOR_THE_SYSTEM)}
    others = set(found) - system - {ANY_NAME_CAN_BE_FOLLOWED}
    assert {found[name] for name in system} == {403}
    assert {name: found[name] for name in others if found[name] != 404} == {}


async def test_point_12_who_names_another_namespace_is_refused(house: House) -> None:
    ids = await furnish(house)
    there = await house.user("eve@mill.test", there="admin")

    assert set((await _replayed(house, there, "here", ids)).values()) == {403}


async def test_point_12_the_same_requests_find_everything_where_it_belongs(house: House) -> None:
    ids = await furnish(house)

    found = await _replayed(house, house.root, "here", ids, "GET")

    elsewhere = {"GET /v1/users/{user_id}", "GET /api/v1/workflows/{chain_id}"}
    elsewhere |= {"GET /workflows/{workflow_id}"}  # of other shapes, with other ids
    assert {n: s for n, s in found.items() if s not in {200, 409} and n not in elsewhere} == {}


LISTS = (
    "/v1/workflows",
    "/v1/runs",
    "/v1/jobs",
    "/v1/dead-letters",
    "/v1/dead-letters/groups",
    "/v1/keys",
    "/v1/service-accounts",
    "/v1/members",
    "/v1/audit",
    "/v1/secrets",
    "/v1/queues",
    "/api/v1/jobs",
)


@pytest.mark.parametrize("path", LISTS)
async def test_point_12_lists_and_counts_hold_nothing_of_others(house: House, path: str) -> None:
    ids = await furnish(house)
    there = await house.user("eve@mill.test", there="admin")

    text = (await house.ask(there, "GET", path)).text

    assert [one for one in ids.values() if len(one) > 6 and one in text] == []
    overview = await house.got(there, "GET", "/v1/overview")
    assert (overview["open_runs"], overview["ready"]) == (0, 0)


async def test_point_12_namespaces_of_others_are_not_listed(house: House) -> None:
    await house.namespaces("here", "there")
    there = await house.user("eve@mill.test", there="viewer")

    listed = (await house.got(there, "GET", "/v1/namespaces"))["items"]

    assert [one["name"] for one in listed] == ["there"]
    assert (await house.ask(there, "GET", "/v1/namespaces/here")).status_code == 404


async def test_point_12_a_cursor_tells_no_name_of_others(house: House) -> None:
    await house.namespaces("here", "there", "where")
    there = await house.user("eve@mill.test", there="viewer", default="viewer")
    names, after = [], ""

    while after is not None:
        page = await house.got(there, "GET", f"/v1/namespaces?limit=1{after}")
        names += [one["name"] for one in page["items"]]
        after = f"&after={page['next']}" if page["next"] else None  # type: ignore[assignment]
        assert page["next"] in {None, encode_cursor(NameCursor(names[-1]))}

    assert names == ["default", "there"]
