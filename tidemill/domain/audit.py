"""The audit log as a chain: every entry carries the hash of the one before it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from tidemill.domain.identifiers import Moment

BEGINNING = "0" * 64
"""What stands for the entry before the first."""


DONE = "done"
REFUSED = "refused"


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what, where and from where: an entry before it has its place."""

    at: Moment
    actor: str  # id of the account or credential
    actor_name: str
    action: str  # `run.cancel`
    namespace: str  # `*` for what belongs to none
    target: str = ""
    outcome: str = DONE  # or REFUSED
    address: str = ""
    request_id: str = ""
    detail: Mapping[str, str] = {}


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A deed in its place."""

    number: int
    deed: Deed
    previous: str
    hash: str


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Where the chain ends."""

    number: int = 0
    hash: str = BEGINNING


def link(head: Head, deeds: Iterable[Deed]) -> list[AuditEntry]:
    """The entries that continue a chain."""
    entries = []
    for deed in deeds:
        number = head.number + 1
        digest = _hash(number, deed, head.hash)
        entries.append(AuditEntry(number=number, deed=deed, previous=head.hash, hash=digest))
        head = Head(number=number, hash=digest)
    return entries


def follow(head: Head, entries: Iterable[AuditEntry]) -> tuple[Head, int | None]:
    """Go along a chain: where it leads, and the number at which it is broken, if it is."""
    for entry in entries:
        expected = _hash(head.number + 1, entry.deed, head.hash)
        if (entry.number, entry.previous, entry.hash) != (head.number + 1, head.hash, expected):
            return head, head.number + 1
        head = Head(number=entry.number, hash=entry.hash)
    return head, None


def _hash(number: int, deed: Deed, previous: str) -> str:
    # Field by field in a fixed order, so that the text of an entry never depends on a library.
    fields = [
        number,
        previous,
        deed.at,
        deed.actor,
        deed.actor_name,
        deed.action,
        deed.namespace,
        deed.target,
        deed.outcome,
        deed.address,
        deed.request_id,
        sorted(deed.detail.items()),
    ]
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()
