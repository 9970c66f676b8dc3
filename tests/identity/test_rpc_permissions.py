"""Every method of every service asks for something, and for that alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.identity.guarded import SERVICES, a_guarded_mill, a_service, a_worker, call
from tests.identity.stage import ROLES, House
from tests.roles.gateway_stage import Mill
from tidemill.domain.permissions import GRANTS, Role
from tidemill.domain.workflow import TaskSpec
from tidemill.gateway import identity, query
from tidemill.ports.identity import TASK
from tidemill.protocol.codec import ATTACH
from tidemill.protocol.generated import query_pb2 as wire

HERE, THERE = "here", "there"


@dataclass(frozen=True)
class Subject:
    """Somebody who asks, and the role that is known to be theirs in HERE."""

    name: str
    token: str = ""
    role: str = ""
    everywhere: bool = False

    def may(self, namespace: str, method: str) -> bool:
        """What is expected."""
        if self.everywhere:
            return True
        held = GRANTS[Role(self.role)] if self.role and namespace == HERE else frozenset()
        return query.PERMISSIONS[method] in held


@pytest.fixture
async def mill(house: House) -> AsyncIterator[Mill]:
    async with a_guarded_mill(house) as mill:
        yield mill


@pytest.fixture
async def subjects(house: House) -> list[Subject]:
    await house.namespaces(HERE, THERE)
    found = [
        Subject("nobody"),
        Subject("unknown", "tmk_unknown"),
        Subject("admin of all", house.root, everywhere=True),
        Subject("guest", await house.user("guest@mill.test")),
        Subject("worker", await a_worker(house, namespace=HERE)),
        Subject("task", house.identity.signer.sign(TASK, "run/0/1", 60)),
        Subject("service", await a_service(house, HERE), "viewer"),
        Subject("no scope", await house.key(house.root, HERE, scopes=["keys:read"])),
    ]
    for role in ROLES:
        token = await house.user(f"{role}@mill.test", **{HERE: role})
        found.append(Subject(role, token, role))
    return found


def test_every_method_of_every_service_says_what_it_asks_for() -> None:
    methods = {f"/{one.full_name}/{method.name}" for one in SERVICES for method in one.methods}

    asked = {f"/{query.SERVICE}/{name}" for name in query.PERMISSIONS}
    asked |= {f"/{identity.SERVICE}/{name}" for name in identity.CHECKS}

    assert methods == asked | {ATTACH}


async def test_every_method_role_and_namespace(mill: Mill, subjects: list[Subject]) -> None:
    wrong = [
        f"{method} {subject.name} {namespace}: {code}"
        for method, subject, namespace in product(query.PERMISSIONS, subjects, (HERE, THERE))
        if (code := await status(mill, method, subject, namespace))
        not in expected(subject, method, namespace)
    ]

    assert wrong == []


def expected(subject: Subject, method: str, namespace: str) -> set[grpc.StatusCode]:
    if subject.name in {"nobody", "unknown"}:
        return {grpc.StatusCode.UNAUTHENTICATED}
    if not subject.may(namespace, method):
        return {grpc.StatusCode.PERMISSION_DENIED}
    # The request lacks the id of a run where one is needed.
    return {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}


async def status(mill: Mill, method: str, subject: Subject, namespace: str) -> grpc.StatusCode:
    request = wire.ListRunsRequest(namespace=namespace)  # the field is the first of every request
    try:
        place = f"/{query.SERVICE}/{method}"
        await call(mill, place, request, wire.ListRunsResponse, subject.token)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_a_request_without_a_namespace_is_about_that_of_the_key(
    house: House, mill: Mill
) -> None:
    await house.namespaces(HERE)
    run_id = await mill.start(TaskSpec(id="a", executor="do"), namespace=HERE)
    key = await a_service(house, HERE)

    request = wire.ListRunsRequest()
    found = await call(mill, f"/{query.SERVICE}/ListRuns", request, wire.ListRunsResponse, key)

    assert [one.id for one in found.runs] == [run_id]


async def test_who_watches_a_run_is_sent_away_when_their_key_ends(house: House, mill: Mill) -> None:
    key = await a_service(house)
    run_id = await mill.start(TaskSpec(id="a", executor="do"))

    async with grpc.aio.insecure_channel(mill.address) as channel:
        watching = watch(channel, run_id, key)
        await watching.read()
        await house.got(house.root, "DELETE", f"/v1/keys/{key.split('_')[1]}")
        async with asyncio.timeout(5):
            assert await watching.code() is grpc.StatusCode.UNAUTHENTICATED


def watch(channel: grpc.aio.Channel, run_id: str, key: str) -> Any:
    ask = channel.unary_stream(
        f"/{query.SERVICE}/WatchRun", wire.WatchRunRequest.SerializeToString, wire.Run.FromString
    )
    shown = [("authorization", f"Bearer {key}")]
    return ask(wire.WatchRunRequest(run_id=run_id), metadata=shown)


async def test_where_no_gate_stands_nobody_may_anything(house: House) -> None:
    server = grpc.aio.server(
        handlers=(
            query.query_handler(house.store, house.clock),
            identity.identity_handler(house.principals),
        )
    )
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()

    async with grpc.aio.insecure_channel(address) as channel:
        for method in (f"/{query.SERVICE}/ListRuns", f"/{identity.SERVICE}/ValidateToken"):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary(method, None, None)(b"", timeout=5)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    await server.stop(0)
