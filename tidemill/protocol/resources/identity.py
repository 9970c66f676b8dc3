"""Identity on the wire: logging in, accounts, members, keys, namespaces and the audit log."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.domain.identity_rules import (
    NAME_CHARACTERS_MAX,
    PASSWORD_CHARACTERS_MAX,
    PASSWORD_CHARACTERS_MIN,
)
from tidemill.domain.patterns import (
    ACTION_PATTERN,
    ACTOR_PATTERN,
    EMAIL_PATTERN,
    NAMESPACE_PATTERN,
    PERSON_NAME_PATTERN,
)
from tidemill.domain.permissions import Permission, Role
from tidemill.domain.workflow import Name
from tidemill.protocol.resources.values import PAGE_DEFAULT, SECRET, Cursor, Limit, Time

Email: TypeAlias = Annotated[str, Meta(max_length=254, pattern=EMAIL_PATTERN)]
PersonName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=NAME_CHARACTERS_MAX, pattern=PERSON_NAME_PATTERN)
]
NamespaceName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=63, pattern=NAMESPACE_PATTERN)
]
Password: TypeAlias = Annotated[
    str,
    Meta(
        min_length=PASSWORD_CHARACTERS_MIN,
        max_length=PASSWORD_CHARACTERS_MAX,
        description="Not one of those that are tried first.",
        extra_json_schema=SECRET,
    ),
]
GivenPassword: TypeAlias = Annotated[
    str, Meta(max_length=PASSWORD_CHARACTERS_MAX, extra_json_schema=SECRET)
]
Secret: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256, extra_json_schema=SECRET)]


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Become the first administrator, with the token that the server printed."""

    token: Secret
    email: Email
    password: Password
    name: PersonName | UnsetType = UNSET


class Register(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make an account for oneself."""

    email: Email
    password: Password
    name: PersonName | UnsetType = UNSET
    invitation: Secret | UnsetType = UNSET


class LogIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show who one is."""

    email: Annotated[str, Meta(max_length=254)]
    password: GivenPassword


class Refresh(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask for the next pair of tokens."""

    refresh_token: Secret


class ChangePassword(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replace one's own password; other logins end."""

    current: GivenPassword
    new: Password


class TokensView(msgspec.Struct, frozen=True, kw_only=True):
    """What to send as `Authorization: Bearer`, for how long, and how to get the next one."""

    access_token: str
    refresh_token: str
    expires_in: int  # seconds
    user: UserView
    token_type: str = "Bearer"  # noqa: S105 - the name of a scheme


class UserView(msgspec.Struct, frozen=True, kw_only=True):
    """A person with an account."""

    id: str
    email: str
    name: str
    created_at: Time
    disabled: bool = False
    roles: dict[str, Role] | None = None  # by namespace, `*` everywhere; for who looks users up


class MeView(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and what they may do in the namespace of the request."""

    id: str
    kind: str
    name: str
    namespace: str
    roles: dict[str, Role]
    permissions: tuple[Permission, ...]


class CreateUser(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make an account for somebody."""

    email: Email
    password: Password
    name: PersonName | UnsetType = UNSET
    role: Role | UnsetType = UNSET  # everywhere; roles of one namespace are given by /v1/members


class ChangeUser(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change; what is left out stays. A role of null takes away the one held everywhere."""

    disabled: bool | UnsetType = UNSET
    password: Password | UnsetType = UNSET
    role: Role | UnsetType | None = UNSET


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of a list."""

    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody with a role in the namespace."""

    id: str
    kind: str
    name: str
    role: Role
    since: Time
    email: str | None = None
    disabled: bool = False


class AddMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give a user a role in the namespace."""

    email: Email
    role: Role


class SetMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The role of a member from now on."""

    role: Role


class ServiceAccountView(msgspec.Struct, frozen=True, kw_only=True):
    """An account for a program; it comes in with API keys."""

    id: str
    name: str
    namespace: str
    created_at: Time
    disabled: bool = False


class CreateServiceAccount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make an account for a program."""

    name: PersonName
    role: Role


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, without its secret."""

    id: str
    kind: str
    name: str
    namespace: str
    created_at: Time
    created_by: str
    account_id: str | None = None
    scopes: tuple[Permission, ...] | None = None  # null: all that its account may do
    queues: tuple[str, ...] = ()
    expires_at: Time | None = None
    last_used_at: Time | None = None
    revoked_at: Time | None = None


class NewKeyView(msgspec.Struct, frozen=True, kw_only=True):
    """A key and its text, which is shown this once."""

    key: KeyView
    secret: str


class CreateKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make an API key for oneself or for a service account of the namespace, or a credential for
    workers (`kind`: worker), which serve the `queues` named and nothing else."""

    name: PersonName
    kind: Literal["api", "worker"] = "api"
    queues: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    scopes: Annotated[tuple[Permission, ...], Meta(min_length=1, max_length=100)] | None = None
    expires_in_days: Annotated[int, Meta(ge=1, le=3_650)] | UnsetType | None = (
        UNSET  # 90 for API keys; null, or left out for workers: lives until it is revoked
    )
    service_account: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class NamespaceView(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace, and the executor of tasks that name none."""

    name: str
    created_at: Time
    default_executor: str | None = None


class CreateNamespace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make a namespace."""

    name: NamespaceName
    default_executor: Name | None = None


class ChangeNamespace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change; null goes back to the built-in default."""

    default_executor: Name | None


class InvitationView(msgspec.Struct, frozen=True, kw_only=True):
    """Leave to register, with a role in a namespace."""

    id: str
    namespace: str
    role: Role
    created_at: Time
    created_by: str
    expires_at: Time
    email: str | None = None
    used_at: Time | None = None


class NewInvitationView(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation and its text, which is shown this once."""

    invitation: InvitationView
    secret: str


class Invite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Invite somebody into the namespace; with an address, nobody else can use it."""

    role: Role
    email: Email | None = None


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries to list; `everywhere` is for administrators of the whole system."""

    action: Annotated[str, Meta(max_length=64, pattern=ACTION_PATTERN)] | None = None
    actor: Annotated[str, Meta(max_length=64, pattern=ACTOR_PATTERN)] | None = None
    everywhere: bool = False
    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what, when, where and from where."""

    number: int
    at: Time
    actor: str
    actor_name: str
    action: str
    namespace: str
    target: str
    outcome: str
    address: str
    request_id: str
    detail: dict[str, str]
    hash: str


class AuditVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the chain holds, up to which entry, and the hash of that: keep it elsewhere."""

    holds: bool
    entries: int
    hash: str
    broken_at: int | None = None
