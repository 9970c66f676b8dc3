"""/v1/secrets: secrets in the store, by name; values go in and never come out."""

from __future__ import annotations

import re

from tidemill.api.routing import Answer, Call, endpoint
from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.permissions import Permission
from tidemill.domain.workflow import NAME_CHARACTERS_MAX, NAME_PATTERN
from tidemill.engine.identity.context import Caller
from tidemill.engine.secrets import list_secrets, put_secret, remove_secret
from tidemill.ports.secrets import SecretKey
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources.secrets import PutSecret, SecretPutView, SecretView
from tidemill.protocol.resources.values import Page

_NAME = re.compile(NAME_PATTERN)


@endpoint(
    "GET",
    "/v1/secrets",
    permission=Permission.SECRETS_READ,
    summary="List the names of secrets",
    tag="secrets",
)
async def get_secrets(call: Call) -> Page[SecretView]:
    """By name, all of them; values are never shown."""
    rows = await list_secrets(call.services.store, call.namespace)
    items = tuple(
        SecretView(
            name=row.name, created_at=time_of(row.created_at), changed_at=time_of(row.changed_at)
        )
        for row in rows
    )
    return Page(items=items, next=None)


@endpoint(
    "PUT",
    "/v1/secrets/{name}",
    permission=Permission.SECRETS_WRITE,
    summary="Store or replace a secret",
    tag="secrets",
    errors=("CONFLICT",),
    statuses={201: "It is a new one."},
)
async def put(call: Call, name: str, body: PutSecret) -> Answer[SecretPutView]:
    """The value is sealed before it is stored; tasks get it by its name."""
    services, key = call.services, _key(call, name)
    deed = _caller(call).deed(services.clock.now(), "secret.set", name)
    created = await put_secret(services.store, services.sealing, key, body.value, deed)
    return Answer(SecretPutView(name=name, created=created), status=201 if created else 200)


@endpoint(
    "DELETE",
    "/v1/secrets/{name}",
    permission=Permission.SECRETS_WRITE,
    summary="Forget a secret",
    tag="secrets",
    status=204,
    errors=("NOT_FOUND",),
)
async def delete(call: Call, name: str) -> None:
    """Tasks that need it fail from now on."""
    services = call.services
    deed = _caller(call).deed(services.clock.now(), "secret.delete", name)
    await remove_secret(services.store, _key(call, name), deed)


def _key(call: Call, name: str) -> SecretKey:
    if len(name) > NAME_CHARACTERS_MAX or _NAME.fullmatch(name) is None:
        message = "use 1 to 128 letters, digits, dots, hyphens and underscores"
        raise InvalidInput([Problem(path="name", message=message, code="BAD_NAME")])
    return SecretKey(call.namespace, name)


def _caller(call: Call) -> Caller:
    return Caller(
        principal=call.principal,
        namespace=call.namespace,
        address=call.peer,
        request_id=call.request_id,
    )


ENDPOINTS = (get_secrets, put, delete)
