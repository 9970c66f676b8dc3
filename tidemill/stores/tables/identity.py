"""What changes in identity: accounts, keys, logins, namespaces and the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.domain.audit import AuditEntry, Head
from tidemill.domain.identifiers import Moment
from tidemill.domain.identity import (
    ApiKey,
    Attempts,
    Invitation,
    Membership,
    Namespace,
    RefreshFamily,
    RefreshToken,
)
from tidemill.ports.identity import Login, NewAccount
from tidemill.stores.identity_rows import (
    ACCOUNT_COLUMNS,
    account_from_row,
    account_to_row,
    entry_to_row,
    family_from_row,
    invitation_from_row,
    invitation_to_row,
    key_to_row,
    namespace_to_row,
)
from tidemill.stores.statements import Row, Statements


class StoreIdentity:
    """Implements ports.identity.IdentityTables."""

    def __init__(self, statements: Statements) -> None:
        self.accounts = Accounts(statements)
        self.keys = Keys(statements)
        self.logins = Logins(statements)
        self.audit = Audit(statements)
        self.settings = IdentitySettings(statements)


class Accounts:
    """Implements ports.identity.AccountTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, new: NewAccount) -> bool:
        """Insert an account; False when its e-mail address is taken."""
        row = (*account_to_row(new.account), new.password_hash)
        return await self._statements.execute("add_account", *row) == 1

    async def login(self, email: str) -> Login | None:
        """The user with this address."""
        return _login(await self._statements.fetch("find_login", email))

    async def get(self, account_id: str) -> Login | None:
        """One account."""
        return _login(await self._statements.fetch("get_account", account_id))

    async def set_password(self, account_id: str, password_hash: str) -> None:
        """Replace the hash."""
        await self._statements.execute("set_password", account_id, password_hash)

    async def set_disabled(self, account_id: str, at: Moment | None) -> None:
        """Disable an account, or enable it again."""
        await self._statements.execute("set_disabled", account_id, at)

    async def set_role(self, membership: Membership) -> None:
        """Give a role in a namespace, in place of the one held there."""
        one = membership
        await self._statements.execute(
            "set_role",
            one.account_id,
            one.namespace,
            one.role.value,
            one.created_at,
            one.created_by,
        )

    async def drop_role(self, account_id: str, namespace: str) -> bool:
        """Take the role in a namespace away; False when there is none."""
        return await self._statements.execute("drop_role", account_id, namespace) == 1

    async def count_admins(self) -> int:
        """How many enabled users administer the whole system."""
        return int((await self._statements.fetch("count_admins"))[0][0])


def _login(rows: Sequence[Row]) -> Login | None:
    return Login(account_from_row(rows[0]), rows[0][ACCOUNT_COLUMNS]) if rows else None


class Keys:
    """Implements ports.identity.KeyTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, key: ApiKey) -> None:
        """Insert a key."""
        await self._statements.execute("add_api_key", *key_to_row(key))

    async def revoke(self, namespace: str, key_id: str, at: Moment) -> bool:
        """End a key; False when there is no live one."""
        return await self._statements.execute("revoke_key", namespace, key_id, at) == 1

    async def revoke_of(self, account_id: str, at: Moment) -> None:
        """End all keys of an account."""
        await self._statements.execute("revoke_keys_of", account_id, at)

    async def touch(self, key_ids: Sequence[str], at: Moment, unless_after: Moment) -> None:
        """Note when keys were used, unless that was noted after the moment given."""
        for key_id in sorted(key_ids):
            await self._statements.execute("touch_key", key_id, at, unless_after)

    async def invite(self, invitation: Invitation) -> None:
        """Insert an invitation."""
        await self._statements.execute("add_invitation", *invitation_to_row(invitation))

    async def invitation(self, invitation_id: str) -> Invitation | None:
        """One invitation, used or not."""
        rows = await self._statements.fetch("get_invitation", invitation_id)
        return invitation_from_row(rows[0]) if rows else None

    async def use_invitation(self, invitation_id: str, account_id: str, at: Moment) -> bool:
        """Use it up; False when it was."""
        touched = await self._statements.execute("use_invitation", invitation_id, account_id, at)
        return touched == 1

    async def drop_invitation(self, namespace: str, invitation_id: str) -> bool:
        """Take back an invitation that was not used; False when there is none."""
        return await self._statements.execute("drop_invitation", namespace, invitation_id) == 1

    async def drop_invitations_by(self, account_id: str) -> None:
        """Take back all invitations of somebody that were not used."""
        await self._statements.execute("drop_invitations_by", account_id)


class Logins:
    """Implements ports.identity.LoginTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, family: RefreshFamily) -> None:
        """Insert a login; those of the account that are long over leave."""
        one = family
        await self._statements.execute("prune_refresh_tokens", one.account_id, one.created_at)
        await self._statements.execute("prune_logins", one.account_id, one.created_at)
        row = (one.id, one.account_id, one.address, one.created_at, one.expires_at, one.revoked_at)
        await self._statements.execute("add_login", *row)

    async def add_token(self, token: RefreshToken) -> None:
        """Insert the next refresh token of a login."""
        row = (token.hash, token.family_id, token.created_at, token.used_at)
        await self._statements.execute("add_refresh_token", *row)

    async def token(self, token_hash: str) -> tuple[RefreshFamily, RefreshToken] | None:
        """One refresh token, used or not, and the login that it belongs to."""
        rows = await self._statements.fetch("get_refresh_token", token_hash)
        return (family_from_row(rows[0]), _refresh_token(rows[0])) if rows else None

    async def use_token(self, token_hash: str, at: Moment) -> bool:
        """Use it up; False when it was."""
        return await self._statements.execute("use_refresh_token", token_hash, at) == 1

    async def revoke(self, family_ids: Sequence[str], at: Moment) -> None:
        """End logins, and with them all their tokens."""
        for family_id in sorted(family_ids):
            await self._statements.execute("revoke_login", family_id, at)

    async def revoke_of(self, account_id: str, at: Moment, keep: str = "") -> None:
        """End the logins of an account, all but one."""
        await self._statements.execute("revoke_logins_of", account_id, at, keep)

    async def attempts(self, subjects: Sequence[str]) -> Mapping[str, Attempts]:
        """Lock and return the counters of subjects."""
        found = {}
        for subject in sorted(subjects):
            await self._statements.execute("begin_attempts", subject)
            (row,) = await self._statements.fetch("lock_attempts", subject)
            found[subject] = _attempts(row)
        return found

    async def save_attempts(self, attempts: Sequence[Attempts], forget: Moment) -> None:
        """Write counters; those untouched since `forget` and not locked leave."""
        for one in sorted(attempts, key=lambda each: each.subject):
            row = (one.subject, one.window_at, one.tries, one.failures, one.locked_until)
            await self._statements.execute("save_attempts", *row)
        await self._statements.execute("forget_attempts", forget)


def _refresh_token(row: Row) -> RefreshToken:
    return RefreshToken(hash=row[6], family_id=row[0], created_at=row[7], used_at=row[8])


def _attempts(row: Row) -> Attempts:
    return Attempts(
        subject=row[0], window_at=row[1], tries=row[2], failures=row[3], locked_until=row[4]
    )


class Audit:
    """Implements ports.identity.AuditTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def lock(self) -> Head:
        """Lock and return the end of the chain; the first act of every change of identity."""
        ((number, digest),) = await self._statements.fetch("lock_audit")
        return Head(number=number, hash=digest)

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries behind the head that this transaction has locked."""
        for entry in entries:
            await self._statements.execute("add_audit", *entry_to_row(entry))
        if entries:
            last = entries[-1]
            await self._statements.execute("move_audit_head", last.number, last.hash)


class IdentitySettings:
    """Implements ports.identity.SettingTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_namespace(self, namespace: Namespace) -> bool:
        """Insert a namespace; False when there is one of this name."""
        return await self._statements.execute("add_namespace", *namespace_to_row(namespace)) == 1

    async def save_namespace(self, namespace: Namespace) -> bool:
        """Change the settings of a namespace; False when there is none of this name."""
        row = namespace_to_row(namespace)[:3]
        return await self._statements.execute("save_namespace", *row) == 1

    async def keep(self, name: str, value: str) -> str:
        """Store a value unless there is one; return the one that is there now."""
        await self._statements.execute("keep_value", name, value)
        kept = await self.value(name)
        assert kept is not None, "a value was put there just now"
        return kept

    async def replace(self, name: str, value: str) -> None:
        """Store a value in place of another."""
        await self._statements.execute("replace_value", name, value)

    async def value(self, name: str) -> str | None:
        """A value that was kept."""
        rows = await self._statements.fetch("get_value", name)
        return str(rows[0][0]) if rows else None
