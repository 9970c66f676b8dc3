"""A call as the use cases of identity see it, and what they answer with as resources."""

from __future__ import annotations

from typing import cast

from tidemill.api.call import Call
from tidemill.api.views import time_view
from tidemill.domain.errors import Conflict
from tidemill.domain.identity import Account, ApiKey, Invitation, Member, Namespace
from tidemill.domain.permissions import SYSTEM_NAMESPACE, Role
from tidemill.engine.identity.context import Caller, Identity
from tidemill.engine.identity.logins import Tokens
from tidemill.protocol.resources.identity import (
    InvitationView,
    KeyView,
    MemberView,
    NamespaceView,
    ServiceAccountView,
    TokensView,
    UserView,
)
from tidemill.protocol.resources.values import Time


def identity_of(call: Call) -> Identity:
    """The parts of identity of this process."""
    if call.services.identity is None:
        raise Conflict("the store is open for reading only: its owner writes")
    return call.services.identity


def caller_of(call: Call) -> Caller:
    """Who asks, about the namespace of the request."""
    return Caller(
        principal=call.principal,
        namespace=call.namespace,
        address=call.peer,
        request_id=call.request_id,
    )


def caller_everywhere(call: Call) -> Caller:
    """Who asks, about what belongs to no namespace."""
    return Caller(
        principal=call.principal,
        namespace=SYSTEM_NAMESPACE,
        address=call.peer,
        request_id=call.request_id,
    )


def tokens_view(tokens: Tokens) -> TokensView:
    """A pair of tokens."""
    return TokensView(
        access_token=tokens.access,
        refresh_token=tokens.refresh,
        expires_in=tokens.seconds,
        user=user_view(tokens.account),
    )


def user_view(account: Account, roles: dict[str, Role] | None = None) -> UserView:
    """A user."""
    return UserView(
        id=account.id,
        email=account.email or "",
        name=account.name,
        created_at=_time(account.created_at),
        disabled=account.disabled_at is not None,
        roles=roles,
    )


def service_account_view(account: Account) -> ServiceAccountView:
    """A service account."""
    return ServiceAccountView(
        id=account.id,
        name=account.name,
        namespace=account.namespace or "",
        created_at=_time(account.created_at),
        disabled=account.disabled_at is not None,
    )


def member_view(member: Member) -> MemberView:
    """A member."""
    account = member.account
    return MemberView(
        id=account.id,
        kind=account.kind,
        name=account.name,
        role=member.role,
        since=_time(member.since),
        email=account.email,
        disabled=account.disabled_at is not None,
    )


def key_view(key: ApiKey) -> KeyView:
    """A key, without what it is known by."""
    return KeyView(
        id=key.id,
        kind=key.kind,
        name=key.name,
        namespace=key.namespace,
        created_at=_time(key.created_at),
        created_by=key.created_by,
        account_id=key.account_id,
        scopes=key.scopes,
        queues=key.queues,
        expires_at=time_view(key.expires_at),
        last_used_at=time_view(key.last_used_at),
        revoked_at=time_view(key.revoked_at),
    )


def namespace_view(namespace: Namespace) -> NamespaceView:
    """A namespace."""
    return NamespaceView(
        name=namespace.name,
        created_at=_time(namespace.created_at),
        default_executor=namespace.default_executor,
    )


def invitation_view(invitation: Invitation) -> InvitationView:
    """An invitation, without what it is known by."""
    return InvitationView(
        id=invitation.id,
        namespace=invitation.namespace,
        role=invitation.role,
        created_at=_time(invitation.created_at),
        created_by=invitation.created_by,
        expires_at=_time(invitation.expires_at),
        email=invitation.email,
        used_at=time_view(invitation.used_at),
    )


def _time(moment: int) -> Time:
    return cast(Time, time_view(moment))
