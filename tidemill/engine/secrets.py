"""Secrets in the store: put in sealed, listed by name, taken out again; values never come back."""

from __future__ import annotations

from tidemill.domain.audit import Deed, link
from tidemill.domain.errors import Conflict, InvalidInput, NotFound, Problem
from tidemill.ports.secrets import Sealing, SecretKey, SecretRow
from tidemill.ports.store import Store, Transaction

VALUE_BYTES_MAX = 32 * 1024
LISTED_MAX = 10_000


async def put_secret(
    store: Store, sealing: Sealing | None, key: SecretKey, value: str, deed: Deed
) -> bool:
    """Store or replace a secret; True when it is a new one."""
    if sealing is None:
        raise Conflict(
            "no secrets can be kept here: the server (`tidemill up` or `api`) needs "
            "--secrets-key-file, and pip install 'tidemill[secrets]'",
            code="NO_SECRETS_KEY",
        )
    size = len(value.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= VALUE_BYTES_MAX:
        message = f"has {size} bytes, a secret has 1 to {VALUE_BYTES_MAX}"
        raise InvalidInput([Problem(path="value", message=message, code="OUT_OF_RANGE")])
    sealed = sealing.seal(key, value)
    async with store.transaction() as tx:
        created = await tx.secrets.put(key, sealed)
        await _tell(tx, deed)
    return created


async def list_secrets(store: Store, namespace: str) -> list[SecretRow]:
    """The names of all secrets of a namespace."""
    async with store.transaction() as tx:
        return await tx.secrets.names(namespace, LISTED_MAX)


async def remove_secret(store: Store, key: SecretKey, deed: Deed) -> None:
    """Forget a secret, or NotFound."""
    async with store.transaction() as tx:
        if not await tx.secrets.remove(key):
            raise NotFound(f"there is no secret {key.name} here")
        await _tell(tx, deed)


async def _tell(tx: Transaction, deed: Deed) -> None:
    head = await tx.identity.audit.lock()
    await tx.identity.audit.append(link(head, [deed]))
