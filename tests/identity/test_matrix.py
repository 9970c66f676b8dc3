"""Point 11: every route, every role, every namespace; all of it made from the declarations."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from zlib import crc32

import pytest

from tests.identity.samples import body_of, path_of, status_of
from tests.identity.stage import ROLES, House
from tidemill.api.routing import AUTHENTICATED, PUBLIC, Endpoint
from tidemill.domain.identity import KeyKind
from tidemill.domain.permissions import EVERYWHERE, GRANTS, SYSTEM_NAMESPACE, Permission, Role
from tidemill.domain.principals import SINGLE_USER
from tidemill.engine.identity.context import Caller
from tidemill.engine.identity.keys import KeyWish, create_key
from tidemill.ports.identity import TASK

HERE, THERE = "here", "there"
NAMESPACES = (HERE, THERE)


@dataclass(frozen=True)
class Subject:
    """Somebody who asks: a credential, and the roles that are known to be behind it."""

    name: str
    token: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    only: frozenset[Permission] | None = None
    bound: str | None = None
    powerless: bool = False

    def may(self, namespace: str, permission: Permission) -> bool:
        """What is expected, said in another way than in the product."""
        if self.bound not in {None, namespace}:
            return False
        if self.only is not None and permission not in self.only:
            return False
        system = self.roles.get(SYSTEM_NAMESPACE)
        if system is not None and permission in GRANTS[Role(system)]:
            return True
        local = self.roles.get(namespace)
        if local is None or permission in EVERYWHERE:
            return False
        return permission in GRANTS[Role(local)]


async def _users(house: House) -> list[Subject]:
    found = [Subject("nobody"), Subject("system admin", house.root, {SYSTEM_NAMESPACE: "admin"})]
    for role in ROLES:
        token = await house.user(f"{role}@mill.test", **{HERE: role})
        found.append(Subject(role, token, {HERE: role}))
    token = await house.user("foreign@mill.test", **{THERE: "admin"})
    found.append(Subject("admin of another namespace", token, {THERE: "admin"}))
    found.append(Subject("without any role", await house.user("guest@mill.test")))
    return found


async def _programs(house: House) -> list[Subject]:
    scoped = await house.key(house.root, HERE, scopes=["runs:read", "keys:read"])
    body = {"name": "deployer", "role": "editor"}
    made = await house.got(house.root, "POST", "/v1/service-accounts", json=body, namespace=HERE)
    service = await house.key(house.root, HERE, service_account=made["id"])
    caller = Caller(principal=SINGLE_USER, namespace=HERE)
    wish = KeyWish(name="worker", kind=KeyKind.WORKER, queues=("default",))
    _, worker = await create_key(house.identity, caller, wish)
    task = house.identity.signer.sign(TASK, "run/0/1", 60)
    scopes = frozenset({Permission.RUNS_READ, Permission.KEYS_READ})
    return [
        Subject("scoped key", scoped, {HERE: "admin"}, scopes, bound=HERE),
        Subject("service account", service, {HERE: "editor"}, bound=HERE),
        Subject("worker", worker, powerless=True),
        Subject("task", task, powerless=True),
    ]


@pytest.fixture
async def subjects(house: House) -> list[Subject]:
    """Everybody."""
    await house.namespaces(*NAMESPACES)
    return [*await _users(house), *await _programs(house)]


def expected(subject: Subject, one: Endpoint, namespace: str) -> str:
    """`unknown`, `refused` or `through`, by nothing but the declared permission."""
    if one.permission is PUBLIC:
        return "through"
    if not subject.token:
        return "unknown"
    if subject.powerless:
        return "refused"
    if one.permission is AUTHENTICATED:
        return "through"
    assert isinstance(one.permission, Permission)
    return "through" if subject.may(namespace, one.permission) else "refused"


async def found(house: House, subject: Subject, one: Endpoint, namespace: str) -> int:
    """The status of the request, with a valid body and ids of nothing."""
    headers = {"Tidemill-Namespace": namespace}
    if subject.token:
        headers["Authorization"] = f"Bearer {subject.token}"
    place = crc32(f"{subject.name} {one.path} {namespace}".encode()) % 65_000
    address = f"10.1.{place // 256}.{place % 256}"
    return await status_of(
        house.app,
        one.method,
        path_of(one),
        headers=headers,
        body=body_of(one),
        address=address,
    )


ENDS_THE_LOGIN = {"log_out"}
REFUSES_BY_ITSELF = {"become_first_administrator", "register", "log_in", "refresh_tokens"}
"""Public routes that judge what is in the body: wrong tokens and passwords are 401 or 403."""


async def test_point_11_every_route_role_and_namespace(
    house: House, subjects: list[Subject], capsys: pytest.CaptureFixture[str]
) -> None:
    routes = [one for one in house.app.endpoints if one.name not in ENDS_THE_LOGIN]
    cells = list(product(routes, subjects, NAMESPACES))

    wrong = [complaint for cell in cells if (complaint := await complained(house, *cell))]

    with capsys.disabled():
        shape = f"{len(routes)} routes, {len(subjects)} roles, {len(NAMESPACES)} namespaces"
        print(f"\n{len(cells)} cells of {shape}")
    assert wrong == []


async def complained(house: House, one: Endpoint, subject: Subject, namespace: str) -> str:
    """What is wrong with a cell; empty when nothing is."""
    status = await found(house, subject, one, namespace)
    kind = {401: "unknown", 403: "refused"}.get(status, "through")
    if one.name in REFUSES_BY_ITSELF:
        kind = "through"
    if kind == expected(subject, one, namespace) and status < 500:
        return ""
    return f"{one.method} {one.path} {subject.name} {namespace}: {status}"


async def test_the_end_of_a_login_is_for_whoever_is_known(
    house: House, subjects: list[Subject]
) -> None:
    (log_out,) = [one for one in house.app.endpoints if one.name in ENDS_THE_LOGIN]

    for subject in subjects:
        wanted = 401 if not subject.token else 403 if subject.powerless else None
        status = await found(house, subject, log_out, HERE)
        assert status == wanted or (wanted is None and status in {204, 409}), subject.name


async def test_a_namespace_that_is_not_there_is_refused_or_not_found(
    house: House, subjects: list[Subject]
) -> None:
    guarded = [one for one in house.app.endpoints if isinstance(one.permission, Permission)]

    for one, subject in product(guarded, subjects):
        status = await found(house, subject, one, "nowhere")
        known = subject.roles.get(SYSTEM_NAMESPACE) and subject.bound is None
        assert status == (404 if known else 403 if subject.token else 401), subject.name


async def test_public_routes_answer_the_same_whatever_is_shown(
    house: House, subjects: list[Subject]
) -> None:
    for one in house.app.endpoints:
        if one.permission is PUBLIC:
            statuses = {await found(house, subject, one, HERE) for subject in subjects}
            assert len(statuses) == 1, f"{one.path}: {statuses}"
