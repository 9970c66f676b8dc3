"""/v1/members: who has which role in the namespace."""

from __future__ import annotations

from tidemill.api.callers import caller_of, identity_of, member_view
from tidemill.api.cursors import NameCursor, decode_cursor, paged
from tidemill.api.routing import Call, endpoint
from tidemill.domain.identity import Account, Member
from tidemill.domain.permissions import Permission, Role
from tidemill.engine.identity import members
from tidemill.protocol.resources.identity import AddMember, MemberView, PageQuery, SetMember
from tidemill.protocol.resources.values import Page


@endpoint(
    "GET",
    "/v1/members",
    permission=Permission.MEMBERS_READ,
    summary="List members of the namespace",
    tag="members",
)
async def list_members(call: Call, query: PageQuery) -> Page[MemberView]:
    """Those with a role in this namespace; whoever has one everywhere is not listed."""
    after = decode_cursor(query.after, NameCursor)
    reader = call.services.store.identity
    found = await reader.members(call.namespace, after.name if after else "", query.limit + 1)
    return paged(found, query.limit, member_view, lambda one: NameCursor(one.account.id))


@endpoint(
    "POST",
    "/v1/members",
    permission=Permission.MEMBERS_WRITE,
    summary="Give a user a role in the namespace",
    tag="members",
    errors=("NOT_FOUND", "FORBIDDEN"),
)
async def add_member(call: Call, body: AddMember) -> MemberView:
    """By e-mail address; the role takes the place of one held before."""
    account = await members.set_member(identity_of(call), caller_of(call), body.email, body.role)
    return _view(call, account, body.role)


@endpoint(
    "PUT",
    "/v1/members/{account_id}",
    permission=Permission.MEMBERS_WRITE,
    summary="Set the role of an account in the namespace",
    tag="members",
    errors=("NOT_FOUND", "FORBIDDEN"),
)
async def set_member(call: Call, account_id: str, body: SetMember) -> MemberView:
    """It holds from their next request on."""
    account = await members.set_member(identity_of(call), caller_of(call), account_id, body.role)
    return _view(call, account, body.role)


@endpoint(
    "DELETE",
    "/v1/members/{account_id}",
    permission=Permission.MEMBERS_WRITE,
    summary="Take a role in the namespace away",
    tag="members",
    errors=("NOT_FOUND",),
)
async def remove_member(call: Call, account_id: str) -> None:
    """It holds from their next request on."""
    await members.remove_member(identity_of(call), caller_of(call), account_id)


def _view(call: Call, account: Account, role: Role) -> MemberView:
    return member_view(Member(account=account, role=role, since=call.services.clock.now()))


ENDPOINTS = (list_members, add_member, set_member, remove_member)
