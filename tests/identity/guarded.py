"""A scheduler that lets in whom identity knows, beside the API that knows them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from tests.identity.stage import House
from tests.roles.gateway_stage import Mill, a_mill
from tidemill.gateway.gates import IdentityGate
from tidemill.gateway.identity import identity_handler
from tidemill.protocol.generated import identity_pb2, query_pb2, worker_pb2
from tidemill.runtime.system import SystemClock

VALIDATE = "/tidemill.identity.v1.Identity/ValidateToken"
SERVICES = [
    service
    for wire in (worker_pb2, query_pb2, identity_pb2)
    for service in wire.DESCRIPTOR.services_by_name.values()
]


@asynccontextmanager
async def a_guarded_mill(house: House) -> AsyncIterator[Mill]:
    """Where credentials of the house open what is theirs; tasks get tokens of their own."""
    gate = IdentityGate(house.principals, SystemClock())
    services = [identity_handler(house.principals)]
    async with a_mill(store=house.store, gate=gate, services=services) as mill:
        mill.scheduler.sign_tasks(house.identity.signer)
        yield mill


async def call(mill: Mill, method: str, request: Any, answer: Any, credential: str = "") -> Any:
    """The answer to a call of one message."""
    shown = [("authorization", f"Bearer {credential}")] if credential else []
    async with grpc.aio.insecure_channel(mill.address) as channel:
        ask = channel.unary_unary(method, type(request).SerializeToString, answer.FromString)
        return await ask(request, metadata=shown, timeout=5)


async def validated(mill: Mill, token: str, credential: str) -> Any:
    """What ValidateToken says about a token."""
    request = identity_pb2.ValidateTokenRequest(token=token)
    return await call(mill, VALIDATE, request, identity_pb2.ValidateTokenResponse, credential)


async def a_service(house: House, namespace: str = "default", role: str = "viewer") -> str:
    """The key of a service account."""
    body = {"name": "orders service", "role": role}
    path = "/v1/service-accounts"
    made = await house.got(house.root, "POST", path, json=body, namespace=namespace)
    return await house.key(house.root, namespace, service_account=made["id"])


async def a_worker(house: House, *queues: str, namespace: str = "default", **more: Any) -> str:
    """A credential for workers of these queues."""
    wanted = {"kind": "worker", "queues": queues or ("default",), **more}
    return await house.key(house.root, namespace, **wanted)
