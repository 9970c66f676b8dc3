"""Identity, as the engine sees it: its tables, the hashing of passwords, the signing of tokens.

Whoever changes anything here locks the head of the audit log first (`AuditTable.lock`), and so
they come one after another: no two of them can both be the first or take away the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from tidemill.domain.audit import AuditEntry, Head
from tidemill.domain.identifiers import Moment
from tidemill.domain.identity import (
    Account,
    AccountKind,
    ApiKey,
    Attempts,
    Invitation,
    Member,
    Membership,
    Namespace,
    RefreshFamily,
    RefreshToken,
)
from tidemill.domain.permissions import Role


class NewAccount(NamedTuple):
    """An account about to be stored; without a hash nobody can log in to it."""

    account: Account
    password_hash: str | None


class Login(NamedTuple):
    """What a login is checked against."""

    account: Account
    password_hash: str | None


class KeyHolder(NamedTuple):
    """A key, and the account and roles behind it; no account behind the key of a worker."""

    key: ApiKey
    account: Account | None
    memberships: dict[str, Role]


class FamilyHolder(NamedTuple):
    """A login, and the account and roles behind it."""

    family: RefreshFamily
    account: Account
    memberships: dict[str, Role]


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries to list, newest first; a namespace of None means all."""

    namespace: str | None
    action: str | None = None
    actor: str | None = None
    before: int | None = None
    limit: int = 50


class AccountTable(Protocol):
    """People, service accounts and their roles."""

    async def add(self, new: NewAccount) -> bool:
        """Insert an account; False when its e-mail address is taken."""

    async def login(self, email: str) -> Login | None:
        """The user with this address."""

    async def get(self, account_id: str) -> Login | None:
        """One account."""

    async def set_password(self, account_id: str, password_hash: str) -> None:
        """Replace the hash."""

    async def set_disabled(self, account_id: str, at: Moment | None) -> None:
        """Disable an account, or enable it again."""

    async def set_role(self, membership: Membership) -> None:
        """Give a role in a namespace, in place of the one held there."""

    async def drop_role(self, account_id: str, namespace: str) -> bool:
        """Take the role in a namespace away; False when there is none."""

    async def count_admins(self) -> int:
        """How many enabled users administer the whole system."""


class KeyTable(Protocol):
    """API keys, credentials of workers, and invitations."""

    async def add(self, key: ApiKey) -> None:
        """Insert a key."""

    async def revoke(self, namespace: str, key_id: str, at: Moment) -> bool:
        """End a key; False when there is no live one."""

    async def revoke_of(self, account_id: str, at: Moment) -> None:
        """End all keys of an account."""

    async def touch(self, key_ids: Sequence[str], at: Moment, unless_after: Moment) -> None:
        """Note when keys were used, unless that was noted after the moment given."""

    async def invite(self, invitation: Invitation) -> None:
        """Insert an invitation."""

    async def invitation(self, invitation_id: str) -> Invitation | None:
        """One invitation, used or not."""

    async def use_invitation(self, invitation_id: str, account_id: str, at: Moment) -> bool:
        """Use it up; False when it was."""

    async def drop_invitation(self, namespace: str, invitation_id: str) -> bool:
        """Take back an invitation that was not used; False when there is none."""

    async def drop_invitations_by(self, account_id: str) -> None:
        """Take back all invitations of somebody that were not used."""


class LoginTable(Protocol):
    """Logins, their refresh tokens, and how often they were tried."""

    async def add(self, family: RefreshFamily) -> None:
        """Insert a login."""

    async def add_token(self, token: RefreshToken) -> None:
        """Insert the next refresh token of a login."""

    async def token(self, token_hash: str) -> tuple[RefreshFamily, RefreshToken] | None:
        """One refresh token, used or not, and the login that it belongs to."""

    async def use_token(self, token_hash: str, at: Moment) -> bool:
        """Use it up; False when it was."""

    async def revoke(self, family_ids: Sequence[str], at: Moment) -> None:
        """End logins, and with them all their tokens."""

    async def revoke_of(self, account_id: str, at: Moment, keep: str = "") -> None:
        """End the logins of an account, all but one."""

    async def attempts(self, subjects: Sequence[str]) -> Mapping[str, Attempts]:
        """Lock and return the counters of subjects."""

    async def save_attempts(self, attempts: Sequence[Attempts], forget: Moment) -> None:
        """Write counters; those untouched since `forget` and not locked leave."""


class AuditTable(Protocol):
    """The audit log: it only grows."""

    async def lock(self) -> Head:
        """Lock and return the end of the chain; the first act of every change of identity."""

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries behind the head that this transaction has locked."""


class SettingTable(Protocol):
    """Namespaces, and what the system must remember about itself."""

    async def add_namespace(self, namespace: Namespace) -> bool:
        """Insert a namespace; False when there is one of this name."""

    async def save_namespace(self, namespace: Namespace) -> bool:
        """Change the settings of a namespace; False when there is none of this name."""

    async def keep(self, name: str, value: str) -> str:
        """Store a value unless there is one; return the one that is there now."""

    async def replace(self, name: str, value: str) -> None:
        """Store a value in place of another."""

    async def value(self, name: str) -> str | None:
        """A value that was kept."""


class IdentityTables(Protocol):
    """The tables of identity in a transaction."""

    @property
    def accounts(self) -> AccountTable: ...
    @property
    def keys(self) -> KeyTable: ...
    @property
    def logins(self) -> LoginTable: ...
    @property
    def audit(self) -> AuditTable: ...
    @property
    def settings(self) -> SettingTable: ...


class PrincipalReader(Protocol):
    """Who holds the credentials that were shown, read in batches and without locks."""

    async def key_holders(self, key_ids: Sequence[str]) -> Mapping[str, KeyHolder]:
        """Keys by id, live or not; those that never were are left out."""

    async def family_holders(self, family_ids: Sequence[str]) -> Mapping[str, FamilyHolder]:
        """Logins by id, live or not; those that never were are left out."""

    async def namespaces_there(self, names: Sequence[str]) -> set[str]:
        """Which of these namespaces exist."""


class IdentityReader(PrincipalReader, Protocol):
    """What people look at."""

    async def accounts(
        self, kind: AccountKind, after: str, limit: int
    ) -> list[tuple[Account, dict[str, Role]]]:
        """A page of accounts in order of id, each with its roles."""

    async def service_accounts(self, namespace: str, after: str, limit: int) -> list[Account]:
        """A page of the service accounts of a namespace, in order of id."""

    async def account(self, account_id: str) -> tuple[Account, dict[str, Role]] | None:
        """One account and its roles."""

    async def members(self, namespace: str, after: str, limit: int) -> list[Member]:
        """A page of those who have a role in a namespace, in order of id."""

    async def keys(self, namespace: str, after: str, limit: int) -> list[ApiKey]:
        """A page of keys, in order of id."""

    async def invitations(self, namespace: str, after: str, limit: int) -> list[Invitation]:
        """A page of invitations, in order of id."""

    async def namespaces(self, after: str, limit: int) -> list[Namespace]:
        """A page of namespaces, in order of name."""

    async def namespace(self, name: str) -> Namespace | None:
        """One namespace."""

    async def entries(self, query: AuditQuery) -> list[AuditEntry]:
        """A page of the audit log, newest first."""

    async def chain(self, after: int, limit: int) -> list[AuditEntry]:
        """Entries above a number, oldest first: to verify."""

    async def head(self) -> Head:
        """The end of the chain."""


class PasswordHasher(Protocol):
    """Slow on purpose, and off the loop."""

    async def hash(self, password: str) -> str:
        """What to store of a password."""

    async def verify(self, password: str, stored: str | None) -> bool:
        """Whether it is the password; without a hash, False after the same work."""

    def is_outdated(self, stored: str) -> bool:
        """Whether a hash was made with other parameters than are used today."""


class TokenKind(msgspec.Struct, frozen=True):
    """What a signed token is for; one of another kind is never taken instead."""

    name: str
    seconds_max: int


ACCESS = TokenKind("access", 15 * 60)
TASK = TokenKind("task", 24 * 3_600)


class TokenSigner(Protocol):
    """Signs and reads tokens that expire by themselves."""

    def sign(self, kind: TokenKind, subject: str, seconds: int, **claims: str | int) -> str:
        """A token about a subject."""

    def read(self, kind: TokenKind, token: str) -> Mapping[str, str | int] | None:
        """The claims of a token; None when it is not ours, not of this kind, or not valid now."""
