"""Who may come to the address of a scheduler, as its settings say, with everything put together."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.process.cluster import fresh_database
from tests.roles.test_gateway_security import first_word
from tests.roles.test_worker_grpc import hello_then_silence
from tidemill.domain.errors import InvalidInput
from tidemill.domain.identity import KeyKind
from tidemill.domain.principals import SINGLE_USER
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.engine.identity.context import Caller
from tidemill.engine.identity.keys import KeyWish, create_key
from tidemill.protocol.generated import identity_pb2 as wire
from tidemill.protocol.messages import Assignments, Refused, Welcome
from tidemill.runtime.addresses import StoreAddress, parse_store
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.guarding import check_listening
from tidemill.runtime.parts import Parts
from tidemill.runtime.roles import scheduler_role
from tidemill.runtime.settings import Settings
from tidemill.worker.grpc_link import GrpcLink, read_security
from tidemill.worker.link import WorkerRefused

FREE = "127.0.0.1:0"
TOKEN = "only-we-two-know"


@pytest.mark.parametrize(
    ("settings", "path", "message"),
    [
        ({"listen": FREE, "auth": "shared-token"}, "--auth", "is for schedulers"),
        ({"listen_workers": FREE, "auth": "single-user"}, "--auth", "is for api and up"),
        ({"listen_workers": FREE, "token": TOKEN}, "--token-file", "a credential of its own"),
        (
            {
                "listen_workers": "0.0.0.0:1",
                "auth": "shared-token",
                "tls_cert": "c",
                "tls_key": "k",
            },
            "--listen",
            "give --token-file or TIDEMILL_TOKEN",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    settings: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_listening(Settings(**settings))

    (problem,) = refused.value.problems
    assert (problem.path, message in problem.message) == (path, True)


def test_identity_needs_no_shared_token_to_be_reached() -> None:
    settings = Settings(
        listen_workers="0.0.0.0:7300", auth="identity", tls_cert=Path("c"), tls_key=Path("k")
    )

    check_listening(settings)


async def credential_for(parts: Parts, *queues: str) -> str:
    """A new credential for workers."""
    assert parts.identity is not None
    caller = Caller(principal=SINGLE_USER, namespace="default")
    wish = KeyWish(name="crew", kind=KeyKind.WORKER, queues=queues)
    _, text = await create_key(parts.identity.identity, caller, wish)
    return text


async def active(address: str, credential: str, token: str) -> bool:
    """Whether ValidateToken knows a token."""
    async with grpc.aio.insecure_channel(address) as channel:
        ask = channel.unary_unary(
            "/tidemill.identity.v1.Identity/ValidateToken",
            wire.ValidateTokenRequest.SerializeToString,
            wire.ValidateTokenResponse.FromString,
        )
        shown = [("authorization", f"Bearer {credential}")] if credential else []
        answer = await ask(wire.ValidateTokenRequest(token=token), metadata=shown, timeout=5)
    return bool(answer.active)


async def first_token(address: str, credential: str | None) -> str:
    """The token of the first task that a worker gets."""
    link = GrpcLink(address, read_security(token=credential))
    answers = link.open(hello_then_silence())
    try:
        async with asyncio.timeout(10):
            while not isinstance(message := await anext(answers), Assignments):
                pass
    finally:
        await answers.aclose()  # type: ignore[attr-defined]
    return message.assignments[0].task_token


async def started(parts: Parts) -> None:
    request = runs.StartRequest(
        workflow=Workflow(name="w", tasks=(TaskSpec(id="a", executor="noop"),))
    )
    await runs.start(parts.store, parts.bus, parts.entropy, [request])


async def test_a_scheduler_with_identity_lets_workers_in_by_their_own_credential(
    postgres_dsn: str,
) -> None:
    store = parse_store(await fresh_database(postgres_dsn))
    settings = Settings(store=store, listen_workers=FREE, auth="identity", migrate=True)

    async with scheduler_role(settings, lambda _: None) as role:
        address = role.facts["workers"]
        good = await credential_for(role.parts, "default")
        other = await credential_for(role.parts, "gpu")

        assert isinstance(await first_word(address, read_security(token=good)), Welcome)
        assert isinstance(await first_word(address, read_security(token=other)), Refused)
        with pytest.raises(WorkerRefused):
            await first_word(address, read_security(token=TOKEN))
        assert await active(address, good, other)
        await started(role.parts)
        assert await first_token(address, good)


async def test_a_scheduler_with_a_shared_token_signs_once_there_is_a_key(
    postgres_dsn: str,
) -> None:
    store = parse_store(await fresh_database(postgres_dsn))
    shared = Settings(
        store=store, listen_workers=FREE, auth="shared-token", token=TOKEN, migrate=True
    )

    async with scheduler_role(shared, lambda _: None) as before:
        assert before.parts.identity is None
        await before.parts.open_identity()  # as an api does when it begins
    async with scheduler_role(shared, lambda _: None) as after:
        address = after.facts["workers"]
        await started(after.parts)
        assert await active(address, TOKEN, await credential_for(after.parts, "default"))
        assert await first_token(address, TOKEN)


async def test_up_signs_where_somebody_can_ask(tmp_path: Path) -> None:
    settings = Settings(
        store=StoreAddress(path=tmp_path / "a.db"),
        workers=0,
        auth="single-user",
        listen_workers=FREE,
    )

    async with Embedded(settings, resume=None) as up:
        assert up.listens_on is not None
        await started(up.parts)
        assert await first_token(up.listens_on, None)


async def test_a_run_in_this_process_has_no_tokens(tmp_path: Path) -> None:
    settings = Settings(store=StoreAddress(path=tmp_path / "a.db"), workers=0)

    async with Embedded(settings) as run:
        assert run.parts.scheduler is not None
        assert run.parts.scheduler._dispatch.assignments.signer is None
