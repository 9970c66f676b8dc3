"""The identity service: who holds a credential, for services beside Tidemill.

proto/identity.proto documents it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import grpc

from tidemill.domain.principals import Principal, TaskAttempt
from tidemill.gateway.gates import check_has_role
from tidemill.gateway.methods import AnyHandler, parsed, unary
from tidemill.gateway.views import time_view
from tidemill.protocol.generated import identity_pb2 as wire

SERVICE = "tidemill.identity.v1.Identity"

CHECKS: Mapping[str, Callable[[], None]] = {"ValidateToken": check_has_role}
"""What each method asks of its caller, whatever the request is about."""


class Validator(Protocol):
    """Tells who holds a credential: engine.identity.principals.Principals."""

    async def validate(self, credential: str) -> Principal | None:
        """Whoever holds it now; None when nobody does."""


def identity_handler(validator: Validator) -> AnyHandler:
    """The service, to be mounted on a GatewayServer."""
    service = IdentityService(validator)
    methods = {"ValidateToken": unary(service.validate_token)}
    return grpc.method_handlers_generic_handler(SERVICE, methods)


class IdentityService:
    """Remembers nothing: what was revoked a moment ago is not active."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    async def validate_token(self, data: bytes) -> wire.ValidateTokenResponse:
        """Who holds the token; nothing about one that nobody holds."""
        CHECKS["ValidateToken"]()
        request = parsed(wire.ValidateTokenRequest, data)
        found = await self._validator.validate(request.token)
        return wire.ValidateTokenResponse() if found is None else _view(found)


def _view(principal: Principal) -> wire.ValidateTokenResponse:
    return wire.ValidateTokenResponse(
        active=True,
        kind=principal.kind,
        principal_id=principal.id,
        principal_name=principal.name,
        namespace=principal.namespace,
        namespaces=[_access(principal, namespace) for namespace in sorted(principal.memberships)],
        expires_at=time_view(principal.expires_at),
        queues=principal.queues,
        attempt=None if principal.attempt is None else _attempt(principal.attempt),
    )


def _access(principal: Principal, namespace: str) -> wire.NamespaceAccess:
    return wire.NamespaceAccess(
        namespace=namespace,
        role=principal.memberships[namespace],
        permissions=sorted(principal.permissions(namespace)),
    )


def _attempt(attempt: TaskAttempt) -> wire.Attempt:
    return wire.Attempt(
        run_id=attempt.token.run_id,
        position=attempt.token.position,
        epoch=attempt.token.epoch,
        workflow=attempt.workflow,
        task=attempt.task,
        attempt=attempt.attempt,
    )
