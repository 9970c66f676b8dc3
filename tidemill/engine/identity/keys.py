"""Service accounts, API keys and credentials of workers."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.domain.errors import Conflict, Forbidden
from tidemill.domain.identifiers import SECOND
from tidemill.domain.identity import Account, AccountKind, ApiKey, KeyKind
from tidemill.domain.identity_rules import name_of
from tidemill.domain.permissions import Permission, Role
from tidemill.domain.principals import PrincipalKind
from tidemill.domain.secrets_shown import Prefix, hash_secret
from tidemill.engine.identity.accounts import give_role
from tidemill.engine.identity.changing import Change, changing
from tidemill.engine.identity.context import (
    Caller,
    Identity,
    check_id,
    check_may_give,
    missing,
    wrong,
)
from tidemill.engine.identity.logins import DAY_SECONDS
from tidemill.ports.identity import NewAccount

DAYS_DEFAULT = 90
ALL = "all"
_PREFIXES = {KeyKind.API: Prefix.API_KEY, KeyKind.WORKER: Prefix.WORKER}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWish:
    """A key that somebody wants."""

    name: str
    kind: KeyKind = KeyKind.API
    scopes: tuple[Permission, ...] | None = None
    queues: tuple[str, ...] = ()  # that a worker may serve; it can serve no others
    days: int | None = DAYS_DEFAULT  # None: until revoked
    service_account: str | None = None  # whose key it is; of whoever asks when not given


async def create_key(identity: Identity, caller: Caller, wish: KeyWish) -> tuple[ApiKey, str]:
    """Make a key in the namespace of the request; its text is shown this once.

    It can do what its account may do there, and no more than whoever makes it. That of a worker
    opens no route: it serves the queues named, and nothing else.
    """
    _check_fits(caller, wish)
    shown = identity.fresh(_PREFIXES[wish.kind])
    now = identity.now()
    async with changing(identity.store) as change:
        account = None if wish.kind is KeyKind.WORKER else await _owner(change, caller, wish)
        key = ApiKey(
            id=shown.id,
            kind=wish.kind,
            namespace=caller.namespace,
            name=name_of(wish.name),
            secret_hash=hash_secret(shown.secret),
            created_at=now,
            created_by=caller.principal.id,
            account_id=account,
            scopes=None if account is None else _scopes(caller, wish),
            queues=tuple(sorted(set(wish.queues))),
            expires_at=None if wish.days is None else now + wish.days * DAY_SECONDS * SECOND,
        )
        await change.keys.add(key)
        change.tell(caller.deed(now, "key.create", key.id, **_told(key)))
    return key, shown.text


def _told(key: ApiKey) -> dict[str, str]:
    """What the audit log says of a new key: whose it is, and how far it reaches."""
    told = {
        "name": key.name,
        "kind": key.kind,
        "account": key.account_id or "",
        "scopes": ALL if key.scopes is None else ", ".join(key.scopes),
        "queues": ", ".join(key.queues),
        "expires": "never" if key.expires_at is None else "",
    }
    if key.kind is KeyKind.WORKER:
        del told["scopes"]
    return {name: text for name, text in told.items() if text}


def _check_fits(caller: Caller, wish: KeyWish) -> None:
    if wish.kind is KeyKind.API:
        if wish.queues:
            raise wrong("queues", "are for credentials of workers: give kind `worker` too")
        return
    if not wish.queues:
        raise wrong("queues", "name at least one queue that the worker may serve")
    for path in ("scopes", "service_account"):
        if getattr(wish, path) is not None:
            raise wrong(path, "is for API keys: a worker serves queues, and nothing else")
    if caller.principal.scopes is not None:
        # What it runs shows inputs and secrets, whatever the scopes say.
        raise Forbidden("a key with scopes makes no credentials of workers")


async def _owner(change: Change, caller: Caller, wish: KeyWish) -> str:
    if wish.service_account is None:
        if caller.principal.kind is PrincipalKind.SINGLE_USER:
            text = "without login there is no user to make a key for: name a service_account"
            raise Conflict(text, code="NO_ACCOUNT")
        return caller.principal.id
    found = await change.accounts.get(check_id("service account", wish.service_account))
    if found is None or found.account.namespace != caller.namespace:
        raise missing("service account", wish.service_account)
    return found.account.id


def _scopes(caller: Caller, wish: KeyWish) -> tuple[Permission, ...] | None:
    """Forbidden for more than whoever asks has; a scoped key makes no key without scopes."""
    asked = wish.scopes if wish.scopes is not None else caller.principal.scopes
    if asked is None:
        return None
    beyond = [scope for scope in sorted(asked) if not caller.principal.may(caller.namespace, scope)]
    if beyond:
        raise Forbidden(f"nobody gives more than they have: {', '.join(beyond)}")
    return tuple(sorted(set(asked)))


async def revoke_key(identity: Identity, caller: Caller, key_id: str) -> None:
    """End a key; its next request is refused."""
    check_id("live key", key_id)
    async with changing(identity.store) as change:
        now = identity.now()
        if not await change.keys.revoke(caller.namespace, key_id, now):
            raise missing("live key", key_id)
        change.tell(caller.deed(now, "key.revoke", key_id))


async def create_service_account(
    identity: Identity, caller: Caller, name: str, role: Role
) -> Account:
    """Make an account for a program, with a role in the namespace of the request."""
    check_may_give(caller, caller.namespace, role)
    now = identity.now()
    account = Account(
        id=identity.fresh_id(),
        kind=AccountKind.SERVICE,
        name=name_of(name),
        namespace=caller.namespace,
        created_at=now,
        created_by=caller.principal.id,
    )
    async with changing(identity.store) as change:
        await change.accounts.add(NewAccount(account, None))
        await give_role(change, caller, account.id, caller.namespace, role, now)
        change.tell(caller.deed(now, "service_account.create", account.id, role=role))
    return account


async def disable_service_account(identity: Identity, caller: Caller, account_id: str) -> None:
    """End a service account and all its keys, for good."""
    check_id("service account", account_id)
    async with changing(identity.store) as change:
        now = identity.now()
        found = await change.accounts.get(account_id)
        if found is None or found.account.namespace != caller.namespace:
            raise missing("service account", account_id)
        await change.accounts.set_disabled(account_id, now)
        await change.accounts.drop_role(account_id, caller.namespace)
        await change.keys.revoke_of(account_id, now)
        change.tell(caller.deed(now, "service_account.disable", account_id))
