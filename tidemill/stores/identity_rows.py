"""Rows of identity to values and back, alike for every database."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidemill.domain.audit import AuditEntry, Deed
from tidemill.domain.identity import (
    Account,
    AccountKind,
    ApiKey,
    Invitation,
    KeyKind,
    Namespace,
    RefreshFamily,
)
from tidemill.domain.permissions import Permission, Role
from tidemill.stores.statements import Row

ACCOUNT_COLUMNS = 8
KEY_COLUMNS = 13
FAMILY_COLUMNS = 6

_encode = msgspec.json.Encoder().encode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_map = msgspec.json.Decoder(dict[str, str]).decode
_PERMISSIONS = {str(permission): permission for permission in Permission}


def account_from_row(row: Row) -> Account:
    """An account as stored."""
    return Account(
        id=row[0],
        kind=AccountKind(row[1]),
        name=row[2],
        email=row[3],
        namespace=row[4],
        created_at=row[5],
        created_by=row[6],
        disabled_at=row[7],
    )


def account_to_row(account: Account) -> Row:
    """All columns of an account but the hash of its password."""
    return (
        account.id,
        account.kind.value,
        account.name,
        account.email,
        account.namespace,
        account.created_at,
        account.created_by,
        account.disabled_at,
    )


def key_from_row(row: Row) -> ApiKey:
    """A key as stored; a scope that only a later release knows opens nothing here."""
    return ApiKey(
        id=row[0],
        kind=KeyKind(row[1]),
        namespace=row[2],
        name=row[3],
        secret_hash=row[4],
        created_at=row[5],
        created_by=row[6],
        account_id=row[7],
        scopes=None if row[8] is None else _scopes(row[8]),
        queues=_decode_texts(row[9]),
        expires_at=row[10],
        last_used_at=row[11],
        revoked_at=row[12],
    )


def _scopes(text: str) -> tuple[Permission, ...]:
    return tuple(_PERMISSIONS[name] for name in _decode_texts(text) if name in _PERMISSIONS)


def key_to_row(key: ApiKey) -> Row:
    """All columns of a key."""
    return (
        key.id,
        key.kind.value,
        key.namespace,
        key.name,
        key.secret_hash,
        key.created_at,
        key.created_by,
        key.account_id,
        None if key.scopes is None else _text(key.scopes),
        _text(key.queues),
        key.expires_at,
        key.last_used_at,
        key.revoked_at,
    )


def family_from_row(row: Row) -> RefreshFamily:
    """A login as stored."""
    return RefreshFamily(
        id=row[0],
        account_id=row[1],
        address=row[2],
        created_at=row[3],
        expires_at=row[4],
        revoked_at=row[5],
    )


def invitation_from_row(row: Row) -> Invitation:
    """An invitation as stored."""
    return Invitation(
        id=row[0],
        secret_hash=row[1],
        namespace=row[2],
        role=Role(row[3]),
        created_at=row[4],
        created_by=row[5],
        expires_at=row[6],
        email=row[7],
        used_at=row[8],
        used_by=row[9],
    )


def invitation_to_row(invitation: Invitation) -> Row:
    """All columns of an invitation."""
    return (
        invitation.id,
        invitation.secret_hash,
        invitation.namespace,
        invitation.role.value,
        invitation.created_at,
        invitation.created_by,
        invitation.expires_at,
        invitation.email,
        invitation.used_at,
        invitation.used_by,
    )


def namespace_from_row(row: Row) -> Namespace:
    """A namespace as stored."""
    return Namespace(
        name=row[0],
        default_executor=row[1],
        settings=_decode_map(row[2]),
        created_at=row[3],
        created_by=row[4],
    )


def namespace_to_row(namespace: Namespace) -> Row:
    """All columns of a namespace."""
    return (
        namespace.name,
        namespace.default_executor,
        _text(namespace.settings),
        namespace.created_at,
        namespace.created_by,
    )


def entry_from_row(row: Row) -> AuditEntry:
    """An entry of the audit log as stored, true or not: whoever verifies will see."""
    deed = Deed(
        at=row[1],
        actor=row[2],
        actor_name=row[3],
        action=row[4],
        namespace=row[5],
        target=row[6],
        outcome=row[7],
        address=row[8],
        request_id=row[9],
        detail=_detail(row[10]),
    )
    return AuditEntry(number=row[0], deed=deed, previous=row[11], hash=row[12])


def _detail(text: str) -> dict[str, str]:
    try:
        return _decode_map(text)
    except msgspec.DecodeError:  # somebody wrote it by hand: the chain is broken here
        return {"unreadable": text}


def entry_to_row(entry: AuditEntry) -> Row:
    """All columns of an entry."""
    deed = entry.deed
    return (
        entry.number,
        deed.at,
        deed.actor,
        deed.actor_name,
        deed.action,
        deed.namespace,
        deed.target,
        deed.outcome,
        deed.address,
        deed.request_id,
        _text(deed.detail),
        entry.previous,
        entry.hash,
    )


def roles_from_rows(rows: Iterable[Row]) -> dict[str, Role]:
    """Roles by namespace, from rows that end with both; null where there is none."""
    return {row[-2]: Role(row[-1]) for row in rows if row[-2] is not None}


def _text(value: object) -> str:
    return _encode(value).decode()
