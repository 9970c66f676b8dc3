"""Credentials as people and programs see them: a prefix, an id, a secret and a checksum.

The prefix lets scanners find one that was committed by mistake; the checksum lets us and them tell
a mistyped one from a real one without asking the store.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from enum import StrEnum
from hmac import compare_digest
from typing import NamedTuple

CHARACTERS_MAX = 200


class Prefix(StrEnum):
    """What a credential is."""

    API_KEY = "tmk"
    WORKER = "tmw"
    REFRESH = "tmr"
    INVITATION = "tmi"
    BOOTSTRAP = "tmb"


class Shown(NamedTuple):
    """The parts of a credential; only the hash of the secret is ever stored."""

    prefix: Prefix
    id: str
    secret: str

    @property
    def text(self) -> str:
        """As it is shown, once."""
        return f"{self.prefix}_{self.id}_{self.secret}{_checksum(self)}"


_SHAPE = re.compile(r"(tm[a-z])_([0-9a-f]{16,64})_([0-9a-f]{64})([0-9a-f]{8})")
_PREFIXES = {str(prefix): prefix for prefix in Prefix}


def read_shown(text: str) -> Shown | None:
    """The parts of a credential; None for what was never one of ours."""
    found = _SHAPE.fullmatch(text) if len(text) <= CHARACTERS_MAX else None
    prefix = _PREFIXES.get(found[1]) if found else None
    if found is None or prefix is None:
        return None
    shown = Shown(prefix, found[2], found[3])
    return shown if compare_digest(_checksum(shown), found[4]) else None


def hash_secret(secret: str) -> str:
    """What is stored of a secret. It has 256 random bits: nothing slower is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_secret(secret: str, stored_hash: str) -> bool:
    """Whether this is the secret, in time that tells nothing."""
    return compare_digest(hash_secret(secret), stored_hash)


def _checksum(shown: Shown) -> str:
    return f"{zlib.crc32(f'{shown.prefix}_{shown.id}_{shown.secret}'.encode()):08x}"
