"""/v1/namespaces: the tenants of a system."""

from __future__ import annotations

import msgspec

from tidemill.api.callers import caller_everywhere, identity_of, namespace_view
from tidemill.api.cursors import NameCursor, decode_cursor, paged
from tidemill.api.routing import AUTHENTICATED, Call, endpoint
from tidemill.domain.identity import Namespace
from tidemill.domain.identity_rules import is_namespace
from tidemill.domain.permissions import SYSTEM_NAMESPACE, Permission
from tidemill.engine.identity import members
from tidemill.engine.identity.context import missing
from tidemill.protocol.resources.identity import (
    ChangeNamespace,
    CreateNamespace,
    NamespaceView,
    PageQuery,
)
from tidemill.protocol.resources.values import Page


@endpoint(
    "GET",
    "/v1/namespaces",
    permission=AUTHENTICATED,
    summary="List the namespaces that one has a role in",
    tag="namespaces",
)
async def list_namespaces(call: Call, query: PageQuery) -> Page[NamespaceView]:
    """In order of name."""
    after = decode_cursor(query.after, NameCursor)
    found = await _seen(call, after.name if after else "", query.limit + 1)
    return paged(found, query.limit, namespace_view, lambda one: NameCursor(one.name))


async def _seen(call: Call, after: str, limit: int) -> list[Namespace]:
    """Those behind a name that may be seen; others must not even show as the end of a page."""
    reader = call.services.store.identity
    if _may_see(call, SYSTEM_NAMESPACE):
        return await reader.namespaces(after, limit)
    names = sorted(name for name in call.principal.memberships if name > after)
    own = [name for name in names if _may_see(call, name)][:limit]
    found = [await reader.namespace(name) for name in own]
    return [one for one in found if one is not None]


def _may_see(call: Call, name: str) -> bool:
    return call.principal.may(name, Permission.NAMESPACES_READ)


@endpoint(
    "GET",
    "/v1/namespaces/{name}",
    permission=AUTHENTICATED,
    summary="Show a namespace",
    tag="namespaces",
    errors=("NOT_FOUND",),
)
async def show_namespace(call: Call, name: str) -> NamespaceView:
    """One that one has a role in; any other is not found."""
    return namespace_view(await _find(call, name))


async def _find(call: Call, name: str) -> Namespace:
    found = await call.services.store.identity.namespace(name) if is_namespace(name) else None
    if found is None or not _may_see(call, name):
        raise missing("namespace", name)
    return found


@endpoint(
    "POST",
    "/v1/namespaces",
    permission=Permission.NAMESPACES_WRITE,
    summary="Make a namespace",
    tag="namespaces",
    status=201,
    errors=("CONFLICT",),
)
async def create_namespace(call: Call, body: CreateNamespace) -> NamespaceView:
    """For administrators of the whole system."""
    caller = caller_everywhere(call)
    made = await members.create_namespace(
        identity_of(call), caller, body.name, body.default_executor
    )
    return namespace_view(made)


@endpoint(
    "PATCH",
    "/v1/namespaces/{name}",
    permission=Permission.NAMESPACES_WRITE,
    summary="Change the settings of a namespace",
    tag="namespaces",
    errors=("NOT_FOUND",),
)
async def change_namespace(call: Call, name: str, body: ChangeNamespace) -> NamespaceView:
    """The default executor runs tasks that name none."""
    known = await _find(call, name)
    changed = msgspec.structs.replace(known, default_executor=body.default_executor)
    caller = caller_everywhere(call)
    return namespace_view(await members.change_namespace(identity_of(call), caller, changed))


ENDPOINTS = (list_namespaces, show_namespace, create_namespace, change_namespace)
