"""ValidateToken: who holds a credential, over a real channel."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from tests.identity.guarded import a_guarded_mill, a_service, a_worker, validated
from tests.identity.stage import Clock, House
from tests.roles.gateway_stage import Mill, a_stranger
from tidemill.domain.events import Released, Succeeded
from tidemill.domain.identifiers import SECOND
from tidemill.domain.workflow import TaskSpec, Timeouts
from tidemill.ports.identity import TASK
from tidemill.protocol.generated.identity_pb2 import ValidateTokenResponse

NOTHING = ValidateTokenResponse()


@pytest.fixture
async def mill(house: House) -> AsyncIterator[Mill]:
    async with a_guarded_mill(house) as mill:
        yield mill


@pytest.fixture
async def service(house: House) -> str:
    return await a_service(house)


async def test_an_access_token_tells_its_user_and_their_roles(
    house: House, mill: Mill, service: str
) -> None:
    await house.namespaces("orders")
    token = await house.user("ada@mill.test", orders="operator")

    found = await validated(mill, token, service)

    (access,) = found.namespaces
    assert (found.active, found.kind, found.namespace) == (True, "user", "orders")
    assert (access.namespace, access.role) == ("orders", "operator")
    assert {"runs:start", "runs:read"} <= set(access.permissions)
    assert "workflows:write" not in access.permissions
    assert found.expires_at.ToMicroseconds() == house.clock.now() // SECOND * SECOND + 900 * SECOND


async def test_an_administrator_may_everything_everywhere(
    house: House, mill: Mill, service: str
) -> None:
    (access,) = (await validated(mill, house.root, service)).namespaces

    assert (access.namespace, access.role) == ("*", "admin")
    assert "users:write" in access.permissions


async def test_a_key_with_scopes_has_no_more_than_those(
    house: House, mill: Mill, service: str
) -> None:
    key = await house.key(house.root, scopes=["runs:read"], expires_in_days=None)

    found = await validated(mill, key, service)

    assert (found.kind, [list(one.permissions) for one in found.namespaces]) == (
        "key",
        [["runs:read"]],
    )
    assert not found.HasField("expires_at")


async def test_a_service_asks_about_itself(mill: Mill, service: str) -> None:
    found = await validated(mill, service, service)

    assert (found.kind, found.principal_name) == ("service", "orders service")


async def test_a_worker_has_queues_and_no_roles(house: House, mill: Mill, service: str) -> None:
    worker = await a_worker(house, "gpu", "default", name="crunchers")

    found = await validated(mill, worker, service)

    assert (found.kind, found.principal_name, list(found.queues)) == (
        "worker",
        "crunchers",
        ["default", "gpu"],
    )
    assert (list(found.namespaces), found.HasField("expires_at")) == ([], False)


@pytest.mark.parametrize("token", ["", "x", "tmk_0_0", "a.b.c", "é" * 9, "x" * 100_000])
async def test_about_what_was_never_a_token_nothing_is_said(
    mill: Mill, service: str, token: str
) -> None:
    assert await validated(mill, token, service) == NOTHING


async def test_about_revoked_and_expired_tokens_nothing_is_said(
    house: House, mill: Mill, service: str, clock: Clock
) -> None:
    key = await house.key(house.root, expires_in_days=1)
    revoked = await house.key(house.root)
    worker = await a_worker(house)
    for text in (revoked, worker):
        await house.got(house.root, "DELETE", f"/v1/keys/{text.split('_')[1]}")
    clock.moment += 86_401 * SECOND

    for token in (key, revoked, worker, house.root):
        assert await validated(mill, token, service) == NOTHING


async def test_one_with_no_role_of_their_own_may_not_ask(house: House, mill: Mill) -> None:
    task = house.identity.signer.sign(TASK, "run/0/1", 60)
    guest = await house.user("guest@mill.test")

    for credential, code in (
        ("", grpc.StatusCode.UNAUTHENTICATED),
        ("tmk_wrong", grpc.StatusCode.UNAUTHENTICATED),
        (task, grpc.StatusCode.PERMISSION_DENIED),
        (guest, grpc.StatusCode.PERMISSION_DENIED),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await validated(mill, house.root, credential)
        assert refused.value.code() is code


async def test_workers_and_users_with_a_role_may_ask(house: House, mill: Mill) -> None:
    for credential in (await a_worker(house), house.root):
        assert (await validated(mill, house.root, credential)).active


async def test_a_task_shows_which_attempt_it_is(house: House, mill: Mill, service: str) -> None:
    worker = await a_worker(house)
    run_id = await mill.start(TaskSpec(id="ship", executor="do"), name="orders")

    async with a_stranger(mill, worker) as stranger:
        (given,) = await stranger.assignments(1)
        found = await validated(mill, given.task_token, service)

    attempt = found.attempt
    assert (found.kind, found.namespace, found.principal_name) == ("task", "default", "ship")
    assert (attempt.run_id, attempt.position, attempt.epoch) == tuple(given.token)
    assert (attempt.workflow, attempt.task, attempt.attempt) == ("orders", "ship", 1)
    assert (run_id, list(found.namespaces)) == (given.token.run_id, [])


async def test_a_token_of_a_task_ends_with_its_attempt(
    house: House, mill: Mill, service: str
) -> None:
    worker = await a_worker(house)
    run_id = await mill.start(TaskSpec(id="ship", executor="do"))

    async with a_stranger(mill, worker) as stranger:
        (first,) = await stranger.assignments(1)
        await stranger.report(first.token, Released(first.token.epoch))
        (second,) = await stranger.assignments(1)
        assert second.token.epoch == first.token.epoch + 1
        assert await validated(mill, first.task_token, service) == NOTHING
        assert (await validated(mill, second.task_token, service)).active
        await stranger.report(second.token, Succeeded(second.token.epoch, b"1"))
        await mill.ended(run_id)

    assert await validated(mill, second.task_token, service) == NOTHING


async def test_a_token_of_a_task_lives_as_long_as_the_attempt_may(house: House, mill: Mill) -> None:
    limits = Timeouts(attempt_seconds=90)
    await mill.start(
        TaskSpec(id="a", executor="do", timeouts=limits), TaskSpec(id="b", executor="do")
    )

    async with a_stranger(mill, await a_worker(house)) as stranger:
        given = {one.task: one for one in await stranger.assignments(2)}

    read = house.identity.signer.read
    lives = {}
    for task, one in given.items():
        claims = read(TASK, one.task_token)
        assert claims is not None
        lives[task] = int(claims["exp"]) - int(claims["iat"])
    assert lives == {"a": 91, "b": 86_400}


async def test_without_a_key_to_sign_with_tasks_get_no_token(house: House, mill: Mill) -> None:
    mill.scheduler.sign_tasks(None)
    await mill.start(TaskSpec(id="ship", executor="do"))

    async with a_stranger(mill, await a_worker(house)) as stranger:
        (given,) = await stranger.assignments(1)

    assert given.task_token == ""
