"""Who there is: accounts, what they may do where, and what they show to be known."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from tidemill.domain.identifiers import Moment
from tidemill.domain.permissions import Permission, Role


class AccountKind(StrEnum):
    """What an account is for."""

    USER = "user"
    SERVICE = "service"


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A person or a service account; the hash of a password is not part of it."""

    id: str
    kind: AccountKind
    name: str
    created_at: Moment
    created_by: str
    email: str | None = None  # users only: what they log in with
    namespace: str | None = None  # service accounts only
    disabled_at: Moment | None = None


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The role of an account in a namespace."""

    account_id: str
    namespace: str
    role: Role
    created_at: Moment
    created_by: str


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A membership with the account that has it, for people."""

    account: Account
    role: Role
    since: Moment


class KeyKind(StrEnum):
    """Whose key it is."""

    API = "api"
    WORKER = "worker"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A long-lived credential, bound to a namespace. Only the hash of its secret is kept."""

    id: str
    kind: KeyKind
    namespace: str
    name: str
    secret_hash: str
    created_at: Moment
    created_by: str
    account_id: str | None = None  # whose roles it has; None for workers
    scopes: tuple[Permission, ...] | None = None  # None: all that the account may do
    queues: tuple[str, ...] = ()
    expires_at: Moment | None = None
    last_used_at: Moment | None = None
    revoked_at: Moment | None = None

    def is_live(self, now: Moment) -> bool:
        """Whether it still opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class RefreshFamily(msgspec.Struct, frozen=True, kw_only=True):
    """One login and all tokens that follow from it. The id is the hash of what tokens carry."""

    id: str
    account_id: str
    address: str
    created_at: Moment
    expires_at: Moment
    revoked_at: Moment | None = None

    def is_live(self, now: Moment) -> bool:
        """Whether its tokens still open anything."""
        return self.revoked_at is None and now < self.expires_at


class RefreshToken(msgspec.Struct, frozen=True, kw_only=True):
    """One link of a family; using it twice ends the family."""

    hash: str
    family_id: str
    created_at: Moment
    used_at: Moment | None = None


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """Leave to register once, with a role that waits."""

    id: str
    secret_hash: str
    namespace: str
    role: Role
    created_at: Moment
    created_by: str
    expires_at: Moment
    email: str | None = None  # when given, for nobody else
    used_at: Moment | None = None
    used_by: str | None = None


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant: whatever is in it is seen by its members only."""

    name: str
    created_at: Moment
    created_by: str
    default_executor: str | None = None  # of tasks that name none
    settings: Mapping[str, str] = {}


class Registration(StrEnum):
    """Who may make an account for themselves."""

    OPEN = "open"  # anybody; without a role until somebody gives one
    INVITATION = "invitation"
    OFF = "off"


class Attempts(msgspec.Struct, frozen=True, kw_only=True):
    """How often something was tried lately, by a subject such as an address."""

    subject: str
    window_at: Moment = 0  # when the minute that is counted began
    tries: int = 0
    failures: int = 0  # in a row
    locked_until: Moment = 0
