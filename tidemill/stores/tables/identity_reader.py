"""Who holds a credential, and what people look at in identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from tidemill.domain.audit import AuditEntry, Head
from tidemill.domain.identity import (
    Account,
    AccountKind,
    ApiKey,
    Invitation,
    Member,
    Namespace,
)
from tidemill.domain.permissions import Role
from tidemill.ports.identity import AuditQuery, FamilyHolder, KeyHolder
from tidemill.stores.identity_rows import (
    ACCOUNT_COLUMNS,
    FAMILY_COLUMNS,
    KEY_COLUMNS,
    account_from_row,
    entry_from_row,
    family_from_row,
    invitation_from_row,
    key_from_row,
    namespace_from_row,
    roles_from_rows,
)
from tidemill.stores.statements import Row, Statements

NUMBER_MAX = 2**62


class StoreIdentityReader:
    """Implements ports.identity.IdentityReader."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def key_holders(self, key_ids: Sequence[str]) -> Mapping[str, KeyHolder]:
        """Keys by id, live or not; those that never were are left out."""
        wanted = [(key_id,) for key_id in key_ids]
        rows = await self._statements.fetch_batch("find_key_holders", wanted)
        return {key_id: _key_holder(own) for key_id, own in _by_first(rows)}

    async def family_holders(self, family_ids: Sequence[str]) -> Mapping[str, FamilyHolder]:
        """Logins by id, live or not; those that never were are left out."""
        wanted = [(family_id,) for family_id in family_ids]
        rows = await self._statements.fetch_batch("find_family_holders", wanted)
        return {family_id: _family_holder(own) for family_id, own in _by_first(rows)}

    async def namespaces_there(self, names: Sequence[str]) -> set[str]:
        """Which of these namespaces exist."""
        wanted = [(name,) for name in names]
        return {row[0] for row in await self._statements.fetch_batch("find_namespaces", wanted)}

    async def accounts(
        self, kind: AccountKind, after: str, limit: int
    ) -> list[tuple[Account, dict[str, Role]]]:
        """A page of accounts in order of id, each with its roles."""
        rows = await self._statements.fetch("list_accounts", kind.value, after, limit)
        return [(account_from_row(own[0]), roles_from_rows(own)) for _, own in _by_first(rows)]

    async def service_accounts(self, namespace: str, after: str, limit: int) -> list[Account]:
        """A page of the service accounts of a namespace, in order of id."""
        rows = await self._statements.fetch("list_service_accounts", namespace, after, limit)
        return [account_from_row(row) for row in rows]

    async def account(self, account_id: str) -> tuple[Account, dict[str, Role]] | None:
        """One account and its roles."""
        rows = await self._statements.fetch("get_account", account_id)
        if not rows:
            return None
        roles = await self._statements.fetch("list_roles", account_id)
        return account_from_row(rows[0]), roles_from_rows(roles)

    async def members(self, namespace: str, after: str, limit: int) -> list[Member]:
        """A page of those who have a role in a namespace, in order of id."""
        rows = await self._statements.fetch("list_members", namespace, after, limit)
        return [_member(row) for row in rows]

    async def keys(self, namespace: str, after: str, limit: int) -> list[ApiKey]:
        """A page of keys, in order of id."""
        rows = await self._statements.fetch("list_keys", namespace, after, limit)
        return [key_from_row(row) for row in rows]

    async def invitations(self, namespace: str, after: str, limit: int) -> list[Invitation]:
        """A page of invitations, in order of id."""
        rows = await self._statements.fetch("list_invitations", namespace, after, limit)
        return [invitation_from_row(row) for row in rows]

    async def namespaces(self, after: str, limit: int) -> list[Namespace]:
        """A page of namespaces, in order of name."""
        rows = await self._statements.fetch("list_namespaces", after, limit)
        return [namespace_from_row(row) for row in rows]

    async def namespace(self, name: str) -> Namespace | None:
        """One namespace."""
        rows = await self._statements.fetch("get_namespace", name)
        return namespace_from_row(rows[0]) if rows else None

    async def entries(self, query: AuditQuery) -> list[AuditEntry]:
        """A page of the audit log, newest first."""
        before = NUMBER_MAX if query.before is None else query.before
        rows = await self._statements.fetch(
            "list_audit", query.namespace, query.action, query.actor, before, query.limit
        )
        return [entry_from_row(row) for row in rows]

    async def chain(self, after: int, limit: int) -> list[AuditEntry]:
        """Entries above a number, oldest first: to verify."""
        return [
            entry_from_row(row)
            for row in await self._statements.fetch("follow_audit", after, limit)
        ]

    async def head(self) -> Head:
        """The end of the chain."""
        ((number, digest),) = await self._statements.fetch("read_audit_head")
        return Head(number=number, hash=digest)


def _by_first(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Rows of one credential or account together: there is one for each role of the account."""
    in_order = sorted(rows, key=lambda row: str(row[0]))
    return [(key, list(own)) for key, own in groupby(in_order, key=lambda row: str(row[0]))]


def _key_holder(rows: list[Row]) -> KeyHolder:
    account = tuple(rows[0])[KEY_COLUMNS : KEY_COLUMNS + ACCOUNT_COLUMNS]
    return KeyHolder(
        key=key_from_row(rows[0]),
        account=None if account[0] is None else account_from_row(account),
        memberships=roles_from_rows(rows),
    )


def _family_holder(rows: list[Row]) -> FamilyHolder:
    account = tuple(rows[0])[FAMILY_COLUMNS : FAMILY_COLUMNS + ACCOUNT_COLUMNS]
    return FamilyHolder(
        family=family_from_row(rows[0]),
        account=account_from_row(account),
        memberships=roles_from_rows(rows),
    )


def _member(row: Row) -> Member:
    return Member(
        account=account_from_row(row),
        role=Role(row[ACCOUNT_COLUMNS]),
        since=row[ACCOUNT_COLUMNS + 1],
    )
