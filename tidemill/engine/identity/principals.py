"""From a credential that was shown to whoever shows it.

Nothing is remembered between two requests: what was revoked, disabled or changed a moment ago holds
for the next one, in every process. Lookups that come together are one query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from tidemill.domain.errors import Unauthenticated, Unavailable
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.domain.identity import AccountKind, ApiKey, KeyKind
from tidemill.domain.permissions import SYSTEM_NAMESPACE, Role
from tidemill.domain.principals import Principal, PrincipalKind, home_of
from tidemill.domain.secrets_shown import Prefix, Shown, hash_secret, is_secret, read_shown
from tidemill.engine.gathering import Gatherer
from tidemill.engine.identity.task_tokens import is_running, principal_of_task
from tidemill.ports.clock import Clock
from tidemill.ports.identity import ACCESS, TASK, FamilyHolder, KeyHolder, TokenSigner
from tidemill.ports.store import Store

TOUCH_MICROS: Moment = 60 * SECOND
_KEY_PREFIXES = {Prefix.API_KEY: KeyKind.API, Prefix.WORKER: KeyKind.WORKER}


class Principals:
    """Looks up principals, many at a time."""

    def __init__(self, store: Store, signer: TokenSigner, clock: Clock) -> None:
        self._store = store
        self._signer = signer
        self._clock = clock
        self._keys: Gatherer[str, KeyHolder | None] = Gatherer(self._find_keys)
        self._touches: Gatherer[str, None] = Gatherer(self._touch)
        self._families: Gatherer[str, FamilyHolder | None] = Gatherer(self._find_families)
        self._namespaces: Gatherer[str, bool] = Gatherer(self._find_namespaces)

    async def of(self, credential: str) -> Principal:
        """Whoever holds an access token, an API key, a worker's credential or a task's token.

        Unauthenticated when nobody does, or not any more; it does not say which.
        """
        shown = read_shown(credential)
        if shown is not None:
            found = await self._of_key(shown)
        elif claims := self._signer.read(ACCESS, credential):
            found = await self._of_login(claims)
        else:
            found = self._of_task(credential)
        if found is None:
            raise Unauthenticated("the credential is unknown, expired or revoked")
        return found

    async def validate(self, credential: str) -> Principal | None:
        """Whoever holds it; None when nobody does, or for a task whose attempt does not run."""
        try:
            found = await self.of(credential)
        except Unauthenticated:
            return None
        if found.kind is PrincipalKind.TASK and not await is_running(self._store.reader, found):
            return None
        return found

    async def is_there(self, namespace: str) -> bool:
        """Whether there is such a namespace."""
        return await self._namespaces.ask(namespace)

    async def _of_key(self, shown: Shown) -> Principal | None:
        kind = _KEY_PREFIXES.get(shown.prefix)
        holder = await self._keys.ask(shown.id) if kind else None
        if holder is None or holder.key.kind != kind:
            return None
        if not is_secret(shown.secret, holder.key.secret_hash):
            return None
        now = self._clock.now()
        principal = principal_of_key(holder, now)
        if principal is not None and _is_stale(holder.key, now):
            await self._touches.ask(shown.id)
        return principal

    async def _of_login(self, claims: Mapping[str, str | int]) -> Principal | None:
        holder = await self._families.ask(hash_secret(str(claims.get("sid", ""))))
        if holder is None or holder.account.id != claims["sub"]:
            return None
        found = principal_of_login(holder, self._clock.now())
        if found is None:
            return None
        return msgspec.structs.replace(found, expires_at=int(claims["exp"]) * SECOND)

    def _of_task(self, credential: str) -> Principal | None:
        claims = self._signer.read(TASK, credential)
        return principal_of_task(claims) if claims else None

    async def _find_keys(self, key_ids: Sequence[str]) -> list[KeyHolder | None]:
        found = await self._store.identity.key_holders(sorted(set(key_ids)))
        return [found.get(key_id) for key_id in key_ids]

    async def _touch(self, key_ids: Sequence[str]) -> list[None]:
        now = self._clock.now()
        with suppress(Unavailable):  # it is only for people to see, and the next use tries again
            async with self._store.transaction() as tx:
                await tx.identity.keys.touch(sorted(set(key_ids)), now, now - TOUCH_MICROS)
        return [None] * len(key_ids)

    async def _find_families(self, family_ids: Sequence[str]) -> list[FamilyHolder | None]:
        found = await self._store.identity.family_holders(sorted(set(family_ids)))
        return [found.get(family_id) for family_id in family_ids]

    async def _find_namespaces(self, names: Sequence[str]) -> list[bool]:
        there = await self._store.identity.namespaces_there(sorted(set(names)))
        return [name in there for name in names]


def principal_of_key(holder: KeyHolder, now: Moment) -> Principal | None:
    """Who holds a key; None when it is over, or its account disabled."""
    key, account = holder.key, holder.account
    if not key.is_live(now):
        return None
    if key.kind is KeyKind.WORKER:
        return Principal(
            kind=PrincipalKind.WORKER,
            id=key.id,
            name=key.name,
            namespace=key.namespace,
            bound=True,
            credential=key.id,
            queues=key.queues,
            expires_at=key.expires_at,
        )
    if account is None or account.disabled_at is not None:
        return None
    return Principal(
        kind=PrincipalKind.SERVICE if account.kind is AccountKind.SERVICE else PrincipalKind.KEY,
        id=account.id,
        name=account.name,
        memberships=_memberships_of_key(holder),
        scopes=None if key.scopes is None else frozenset(key.scopes),
        namespace=key.namespace,
        bound=True,
        credential=key.id,
        expires_at=key.expires_at,
    )


def _memberships_of_key(holder: KeyHolder) -> dict[str, Role]:
    """The role of its account in the key's namespace: a key never reaches beyond."""
    namespace, roles = holder.key.namespace, holder.memberships
    order = list(Role)
    held = [roles[name] for name in (SYSTEM_NAMESPACE, namespace) if name in roles]
    return {namespace: max(held, key=order.index)} if held else {}


def principal_of_login(holder: FamilyHolder, now: Moment) -> Principal | None:
    """Who logged in; None when they logged out, or their account is disabled."""
    account = holder.account
    if not holder.family.is_live(now) or account.disabled_at is not None:
        return None
    return Principal(
        kind=PrincipalKind.USER,
        id=account.id,
        name=account.name,
        memberships=holder.memberships,
        namespace=home_of(holder.memberships),
        credential=holder.family.id,
    )


def _is_stale(key: ApiKey, now: Moment) -> bool:
    return key.last_used_at is None or key.last_used_at < now - TOUCH_MICROS
