"""Secrets in the store: sealed on their way in, and opened only for the worker that needs them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidemill.domain.errors import TidemillError
from tidemill.domain.identifiers import Moment


class CannotUnseal(TidemillError):
    """A stored secret does not open: it was sealed with another key."""

    code = "CANNOT_UNSEAL"


class SecretKey(NamedTuple):
    """Which secret."""

    namespace: str
    name: str


class SecretRow(NamedTuple):
    """A secret as people see it: never its value."""

    name: str
    created_at: Moment
    changed_at: Moment


class Sealing(Protocol):
    """Locks values away under a key that is not in the store."""

    def seal(self, key: SecretKey, value: str) -> bytes:
        """What may be stored; it opens under this very key only."""

    def unseal(self, key: SecretKey, sealed: bytes) -> str:
        """The value; CannotUnseal when it was sealed with another key, or for another name."""


class SecretTable(Protocol):
    """Sealed secrets."""

    async def put(self, key: SecretKey, sealed: bytes) -> bool:
        """Store or replace a secret; True when it is a new one."""

    async def remove(self, key: SecretKey) -> bool:
        """Forget a secret; False when there is none."""

    async def names(self, namespace: str, limit: int) -> list[SecretRow]:
        """The secrets of a namespace, by name."""
