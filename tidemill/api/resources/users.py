"""/v1/users and /v1/invitations: accounts of people, for administrators of the whole system."""

from __future__ import annotations

from msgspec import UNSET

from tidemill.api.callers import (
    caller_everywhere,
    caller_of,
    identity_of,
    invitation_view,
    user_view,
)
from tidemill.api.cursors import NameCursor, decode_cursor, paged
from tidemill.api.routing import Call, endpoint
from tidemill.domain.identity import AccountKind
from tidemill.domain.permissions import Permission
from tidemill.engine.identity import accounts, members
from tidemill.engine.identity.accounts import Person, UserChange
from tidemill.engine.identity.context import check_id, missing
from tidemill.protocol.resources.identity import (
    ChangeUser,
    CreateUser,
    InvitationView,
    Invite,
    NewInvitationView,
    PageQuery,
    UserView,
)
from tidemill.protocol.resources.values import Page


@endpoint("GET", "/v1/users", permission=Permission.USERS_READ, summary="List users", tag="users")
async def list_users(call: Call, query: PageQuery) -> Page[UserView]:
    """In the order in which they were made, with their roles in all namespaces."""
    after = decode_cursor(query.after, NameCursor)
    reader = call.services.store.identity
    found = await reader.accounts(AccountKind.USER, after.name if after else "", query.limit + 1)
    return paged(found, query.limit, lambda one: user_view(*one), lambda one: NameCursor(one[0].id))


@endpoint(
    "POST",
    "/v1/users",
    permission=Permission.USERS_WRITE,
    summary="Make a user",
    tag="users",
    status=201,
    errors=("FORBIDDEN", "CONFLICT", "UNAVAILABLE"),
)
async def create_user(call: Call, body: CreateUser) -> UserView:
    """Roles in single namespaces are given by `/v1/members`; `role` here holds everywhere."""
    person = Person(email=body.email, password=body.password, name=body.name or "")
    role = None if body.role is UNSET else body.role
    made = await accounts.create_user(identity_of(call), caller_everywhere(call), person, role)
    return await _shown(call, made.id)


@endpoint(
    "GET",
    "/v1/users/{user_id}",
    permission=Permission.USERS_READ,
    summary="Show a user",
    tag="users",
    errors=("NOT_FOUND",),
)
async def show_user(call: Call, user_id: str) -> UserView:
    """With the roles in all namespaces."""
    return await _shown(call, check_id("user", user_id))


async def _shown(call: Call, user_id: str) -> UserView:
    found = await call.services.store.identity.account(user_id)
    if found is None or found[0].kind is not AccountKind.USER:
        raise missing("user", user_id)
    return user_view(*found)


@endpoint(
    "PATCH",
    "/v1/users/{user_id}",
    permission=Permission.USERS_WRITE,
    summary="Change a user",
    tag="users",
    errors=("NOT_FOUND", "FORBIDDEN", "CONFLICT", "UNAVAILABLE"),
)
async def change_user(call: Call, user_id: str, body: ChangeUser) -> UserView:
    """Whoever is disabled, or has a new password, is logged out with their next request."""
    wanted = UserChange(
        disabled=None if body.disabled is UNSET else body.disabled,
        password=None if body.password is UNSET else body.password,
        role=None if body.role is UNSET else body.role,
        no_role=body.role is None,
    )
    await accounts.change_user(identity_of(call), caller_everywhere(call), user_id, wanted)
    return await _shown(call, user_id)


@endpoint(
    "GET",
    "/v1/invitations",
    permission=Permission.USERS_READ,
    summary="List invitations into the namespace",
    tag="users",
)
async def list_invitations(call: Call, query: PageQuery) -> Page[InvitationView]:
    """Used ones too."""
    after = decode_cursor(query.after, NameCursor)
    reader = call.services.store.identity
    found = await reader.invitations(call.namespace, after.name if after else "", query.limit + 1)
    return paged(found, query.limit, invitation_view, lambda one: NameCursor(one.id))


@endpoint(
    "POST",
    "/v1/invitations",
    permission=Permission.USERS_WRITE,
    summary="Invite somebody into the namespace",
    tag="users",
    status=201,
    errors=("FORBIDDEN", "CONFLICT"),
)
async def invite(call: Call, body: Invite) -> NewInvitationView:
    """The text of the invitation is shown this once; it works once, for some days.

    Where nobody can register (the setting `registration` is off) there are no invitations.
    """
    made, text = await members.invite(identity_of(call), caller_of(call), body.role, body.email)
    return NewInvitationView(invitation=invitation_view(made), secret=text)


@endpoint(
    "DELETE",
    "/v1/invitations/{invitation_id}",
    permission=Permission.USERS_WRITE,
    summary="Take back an invitation",
    tag="users",
    errors=("NOT_FOUND",),
)
async def withdraw_invitation(call: Call, invitation_id: str) -> None:
    """One that was not used yet."""
    await members.withdraw(identity_of(call), caller_of(call), invitation_id)


ENDPOINTS = (
    list_users,
    create_user,
    show_user,
    change_user,
    list_invitations,
    invite,
    withdraw_invitation,
)
