"""/v1/service-accounts: accounts for programs, each in one namespace."""

from __future__ import annotations

from tidemill.api.callers import caller_of, identity_of, service_account_view
from tidemill.api.cursors import NameCursor, decode_cursor, paged
from tidemill.api.routing import Call, endpoint
from tidemill.domain.permissions import Permission
from tidemill.engine.identity import keys
from tidemill.protocol.resources.identity import (
    CreateServiceAccount,
    PageQuery,
    ServiceAccountView,
)
from tidemill.protocol.resources.values import Page


@endpoint(
    "GET",
    "/v1/service-accounts",
    permission=Permission.KEYS_READ,
    summary="List service accounts of the namespace",
    tag="service accounts",
)
async def list_service_accounts(call: Call, query: PageQuery) -> Page[ServiceAccountView]:
    """Disabled ones too."""
    after = decode_cursor(query.after, NameCursor)
    begin = after.name if after else ""
    reader = call.services.store.identity
    found = await reader.service_accounts(call.namespace, begin, query.limit + 1)
    return paged(found, query.limit, service_account_view, lambda one: NameCursor(one.id))


@endpoint(
    "POST",
    "/v1/service-accounts",
    permission=Permission.KEYS_WRITE,
    summary="Make a service account",
    tag="service accounts",
    status=201,
    errors=("FORBIDDEN",),
)
async def create_service_account(call: Call, body: CreateServiceAccount) -> ServiceAccountView:
    """It has a role in this namespace and comes in with the keys that are made for it."""
    caller = caller_of(call)
    made = await keys.create_service_account(identity_of(call), caller, body.name, body.role)
    return service_account_view(made)


@endpoint(
    "DELETE",
    "/v1/service-accounts/{account_id}",
    permission=Permission.KEYS_WRITE,
    summary="Disable a service account",
    tag="service accounts",
    errors=("NOT_FOUND",),
)
async def disable_service_account(call: Call, account_id: str) -> None:
    """All its keys end at once, for good."""
    await keys.disable_service_account(identity_of(call), caller_of(call), account_id)


ENDPOINTS = (list_service_accounts, create_service_account, disable_service_account)
