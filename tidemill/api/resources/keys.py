"""/v1/keys: API keys and credentials of workers of the namespace."""

from __future__ import annotations

from msgspec import UnsetType

from tidemill.api.callers import caller_of, identity_of, key_view
from tidemill.api.cursors import NameCursor, decode_cursor, paged
from tidemill.api.routing import Call, endpoint
from tidemill.domain.identity import KeyKind
from tidemill.domain.permissions import Permission
from tidemill.engine.identity import keys
from tidemill.engine.identity.keys import DAYS_DEFAULT, KeyWish
from tidemill.protocol.resources.identity import CreateKey, KeyView, NewKeyView, PageQuery
from tidemill.protocol.resources.values import Page


@endpoint(
    "GET",
    "/v1/keys",
    permission=Permission.KEYS_READ,
    summary="List API keys of the namespace",
    tag="keys",
)
async def list_keys(call: Call, query: PageQuery) -> Page[KeyView]:
    """Without their secrets, which nobody knows any more; revoked ones too."""
    after = decode_cursor(query.after, NameCursor)
    reader = call.services.store.identity
    found = await reader.keys(call.namespace, after.name if after else "", query.limit + 1)
    return paged(found, query.limit, key_view, lambda one: NameCursor(one.id))


@endpoint(
    "POST",
    "/v1/keys",
    permission=Permission.KEYS_WRITE,
    summary="Make an API key",
    tag="keys",
    status=201,
    errors=("NOT_FOUND", "FORBIDDEN", "CONFLICT"),
)
async def create_key(call: Call, body: CreateKey) -> NewKeyView:
    """For oneself, for a service account, or for workers. The secret is shown this once.

    A key can do what its account may do in this namespace, or less when it has scopes. One for
    workers opens no route: they serve the queues named with it, in this namespace.
    """
    kind, days = KeyKind(body.kind), body.expires_in_days
    if isinstance(days, UnsetType):
        days = None if kind is KeyKind.WORKER else DAYS_DEFAULT
    wish = KeyWish(
        name=body.name,
        kind=kind,
        scopes=body.scopes,
        queues=body.queues,
        days=days,
        service_account=body.service_account,
    )
    made, text = await keys.create_key(identity_of(call), caller_of(call), wish)
    return NewKeyView(key=key_view(made), secret=text)


@endpoint(
    "DELETE",
    "/v1/keys/{key_id}",
    permission=Permission.KEYS_WRITE,
    summary="Revoke an API key",
    tag="keys",
    errors=("NOT_FOUND",),
)
async def revoke_key(call: Call, key_id: str) -> None:
    """Its next request is refused, whichever process it reaches."""
    await keys.revoke_key(identity_of(call), caller_of(call), key_id)


ENDPOINTS = (list_keys, create_key, revoke_key)
