"""Credentials of workers: bound to a namespace and to queues, and over when they are revoked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tests.identity.guarded import a_guarded_mill, a_service, a_worker
from tests.identity.stage import House
from tests.roles.gateway_stage import Mill, Stranger, a_stranger
from tests.roles.test_gateway_security import first_word
from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Succeeded
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import TaskSpec
from tidemill.gateway import gates
from tidemill.ports.identity import TASK
from tidemill.protocol.messages import Ping, Refused, Welcome
from tidemill.worker.grpc_link import read_security
from tidemill.worker.link import WorkerRefused


@pytest.fixture
async def mill(house: House) -> AsyncIterator[Mill]:
    async with a_guarded_mill(house) as mill:
        yield mill


async def refusal(mill: Mill, credential: str, **hello: Any) -> str:
    """Why a worker is refused, by word and by status."""
    async with a_stranger(mill, credential, **hello) as stranger:
        reason = (await stranger.hear(Refused)).reason
        assert await stranger.end() == (grpc.StatusCode.PERMISSION_DENIED, reason)
    return reason


async def test_a_worker_serves_the_queues_of_its_credential(house: House, mill: Mill) -> None:
    credential = await a_worker(house, "default", "gpu")
    run_id = await mill.start(TaskSpec(id="a", executor="do", queue="gpu"))

    async with a_stranger(mill, credential, queues=("gpu",)) as stranger:
        token = await stranger.token()
        await stranger.report(token, Succeeded(token.epoch))

    assert token.run_id == run_id


async def test_another_queue_is_refused_by_its_name_and_others_go_on(
    house: House, mill: Mill
) -> None:
    credential = await a_worker(house, name="crunchers")

    async with a_stranger(mill, credential) as neighbour:
        await neighbour.hear(Welcome)
        reason = await refusal(mill, credential, queues=("default", "gpu"))
        await neighbour.say(Ping())
        assert mill.sessions() == 1

    assert reason == 'credential "crunchers" is for queue "default", not for "gpu"'


async def test_another_namespace_is_refused_by_its_name(house: House, mill: Mill) -> None:
    await house.namespaces("theirs")
    credential = await a_worker(house, name="crunchers")

    reason = await refusal(mill, credential, namespace="theirs")

    assert reason == 'credential "crunchers" is for namespace "default", not for "theirs"'


async def test_whoever_is_no_worker_gets_no_work(house: House, mill: Mill) -> None:
    task = house.identity.signer.sign(TASK, "run/0/1", 60)

    for credential in (house.root, await a_service(house, role="admin"), task):
        assert "workers need a credential of their own" in await refusal(mill, credential)


async def test_a_worker_says_why_it_was_refused(house: House, mill: Mill) -> None:
    credential = await a_worker(house, "gpu")

    word = await first_word(mill.address, read_security(token=credential))
    with pytest.raises(WorkerRefused, match="refused the token"):
        await first_word(mill.address, read_security(token=credential[:-1] + "x"))

    assert isinstance(word, Refused)
    assert 'is for queue "gpu", not for "default"' in word.reason


async def test_a_revoked_credential_ends_the_session_and_the_task_goes_elsewhere(
    house: House, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "LOOK_SECONDS", 0.02)
    revoked, kept = await a_worker(house), await a_worker(house)
    run_id = await mill.start(TaskSpec(id="a", executor="do"))

    async with a_stranger(mill, revoked) as leaving, a_stranger(mill, kept, slots=0) as staying:
        first = await leaving.token()
        await house.got(house.root, "DELETE", f"/v1/keys/{revoked.split('_')[1]}")
        pinging = asyncio.create_task(pings(leaving))
        code, _ = await leaving.end()
        pinging.cancel()
        async with a_stranger(mill, kept) as next_one:
            second = await next_one.token()
        await staying.say(Ping())

    task = await mill.task(run_id)
    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert (second.key, second.epoch) == (first.key, first.epoch + 1)
    assert (task.state, task.losses, task.failures) == (TaskState.RUNNING, 0, 0)


async def pings(stranger: Stranger) -> None:
    while True:
        await stranger.say(Ping())
        await asyncio.sleep(0.02)


async def test_a_store_that_is_away_for_a_moment_ends_no_session() -> None:
    class Away:
        async def of(self, credential: str) -> Any:
            raise Unavailable("gone")

    class Hours:
        hour = 0.0

        def monotonic(self) -> float:
            self.hour += 3_600
            return self.hour

    gate = gates.IdentityGate(Away(), Hours())  # type: ignore[arg-type]
    still = gate.watch([("authorization", "Bearer x")])

    for _ in range(5):
        assert await still()
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"kind": "worker"}, "queues"),
        ({"queues": ["default"]}, "queues"),
        ({"kind": "worker", "queues": ["default"], "scopes": ["runs:read"]}, "scopes"),
        ({"kind": "worker", "queues": ["d"], "service_account": "x"}, "service_account"),
        ({"kind": "worker", "queues": ["no such/name"]}, "queues[0]"),
        ({"kind": "nobody"}, "kind"),
    ],
)
async def test_a_credential_that_makes_no_sense_is_refused(
    house: House, body: dict[str, Any], path: str
) -> None:
    answer = await house.ask(house.root, "POST", "/v1/keys", json={"name": "x", **body})

    assert (answer.status_code, [one["path"] for one in answer.json()["errors"]]) == (400, [path])


async def test_a_key_with_scopes_makes_no_credentials_of_workers(house: House) -> None:
    key = await house.key(house.root, scopes=["keys:write"])
    body = {"name": "x", "kind": "worker", "queues": ["default"]}

    answer = await house.ask(key, "POST", "/v1/keys", json=body)

    assert answer.status_code == 403
    assert "makes no credentials of workers" in answer.json()["detail"]


async def test_a_credential_lives_until_it_is_revoked_unless_said_otherwise(house: House) -> None:
    body = {"name": "x", "kind": "worker", "queues": ["b", "a", "b"]}

    for_good = await house.got(house.root, "POST", "/v1/keys", json=body)
    a_day = await house.got(house.root, "POST", "/v1/keys", json=body | {"expires_in_days": 1})

    assert for_good["secret"].startswith("tmw_")
    assert (for_good["key"]["expires_at"], for_good["key"]["queues"]) == (None, ["a", "b"])
    assert a_day["key"]["expires_at"] is not None
