"""/v1/auth: becoming known, staying known, and leaving."""

from __future__ import annotations

from msgspec import UNSET

from tidemill.api.callers import caller_everywhere, identity_of, tokens_view, user_view
from tidemill.api.routing import AUTHENTICATED, PUBLIC, Call, endpoint
from tidemill.domain.permissions import Permission
from tidemill.engine.identity import accounts, bootstrap, logins
from tidemill.engine.identity.accounts import Person
from tidemill.protocol.resources.identity import (
    Bootstrap,
    ChangePassword,
    LogIn,
    MeView,
    Refresh,
    Register,
    TokensView,
    UserView,
)


@endpoint(
    "POST",
    "/v1/auth/bootstrap",
    permission=PUBLIC,
    summary="Become the first administrator",
    tag="auth",
    status=201,
    errors=("FORBIDDEN", "CONFLICT", "RATE_LIMITED", "UNAVAILABLE"),
)
async def become_first_administrator(call: Call, body: Bootstrap) -> TokensView:
    """Works once, with the token that the server printed at its first start."""
    person = Person(email=body.email, password=body.password, name=body.name or "")
    caller = caller_everywhere(call)
    return tokens_view(await bootstrap.bootstrap(identity_of(call), caller, body.token, person))


@endpoint(
    "POST",
    "/v1/auth/register",
    permission=PUBLIC,
    summary="Make an account for oneself",
    tag="auth",
    status=201,
    errors=("FORBIDDEN", "CONFLICT", "RATE_LIMITED", "UNAVAILABLE"),
)
async def register(call: Call, body: Register) -> UserView:
    """Off unless the setting `registration` says otherwise.

    Who registers without an invitation has no role in any namespace until somebody gives one.
    """
    person = Person(email=body.email, password=body.password, name=body.name or "")
    invitation = None if body.invitation is UNSET else body.invitation
    caller = caller_everywhere(call)
    return user_view(await accounts.register(identity_of(call), caller, person, invitation))


@endpoint(
    "POST",
    "/v1/auth/login",
    permission=PUBLIC,
    summary="Log in",
    tag="auth",
    errors=("UNAUTHENTICATED", "RATE_LIMITED", "UNAVAILABLE"),
)
async def log_in(call: Call, body: LogIn) -> TokensView:
    """An access token for some minutes, and a refresh token to get the next one with."""
    caller = caller_everywhere(call)
    return tokens_view(await logins.login(identity_of(call), caller, body.email, body.password))


@endpoint(
    "POST",
    "/v1/auth/refresh",
    permission=PUBLIC,
    summary="Get the next pair of tokens",
    tag="auth",
    errors=("UNAUTHENTICATED", "UNAVAILABLE"),
)
async def refresh_tokens(call: Call, body: Refresh) -> TokensView:
    """A refresh token works once; when one comes a second time, the login ends."""
    caller = caller_everywhere(call)
    return tokens_view(await logins.refresh(identity_of(call), caller, body.refresh_token))


@endpoint(
    "POST",
    "/v1/auth/logout",
    permission=AUTHENTICATED,
    summary="Log out",
    tag="auth",
    errors=("CONFLICT",),
)
async def log_out(call: Call) -> None:
    """The access token and the refresh token of this login end at once."""
    await logins.logout(identity_of(call), caller_everywhere(call))


@endpoint(
    "GET", "/v1/auth/me", permission=AUTHENTICATED, summary="Who asks, and may do what", tag="auth"
)
async def show_me(call: Call) -> MeView:
    """The permissions are those in the namespace of the request."""
    principal, namespace = call.principal, call.namespace
    allowed = tuple(one for one in Permission if principal.may(namespace, one))
    return MeView(
        id=principal.id,
        kind=principal.kind,
        name=principal.name,
        namespace=namespace,
        roles=principal.memberships,
        permissions=allowed,
    )


@endpoint(
    "POST",
    "/v1/auth/password",
    permission=AUTHENTICATED,
    summary="Change one's own password",
    tag="auth",
    errors=("CONFLICT", "RATE_LIMITED", "UNAVAILABLE"),
)
async def change_password(call: Call, body: ChangePassword) -> None:
    """All other logins of the account end."""
    caller = caller_everywhere(call)
    await logins.change_password(identity_of(call), caller, body.current, body.new)


ENDPOINTS = (
    become_first_administrator,
    register,
    log_in,
    refresh_tokens,
    log_out,
    show_me,
    change_password,
)
