"""Logging in, staying logged in, and logging out."""

from __future__ import annotations

import msgspec

from tidemill.domain.errors import Conflict, Unauthenticated
from tidemill.domain.identifiers import SECOND
from tidemill.domain.identity import Account, RefreshFamily, RefreshToken
from tidemill.domain.identity_rules import check_password, is_email
from tidemill.domain.principals import PrincipalKind
from tidemill.domain.secrets_shown import Prefix, Shown, hash_secret, read_shown
from tidemill.engine.identity.attempts import Door, count_failure, count_success, count_try
from tidemill.engine.identity.changing import Change, changing
from tidemill.engine.identity.context import Caller, Identity
from tidemill.ports.identity import ACCESS, Login

DAY_SECONDS = 24 * 3_600


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What a login gives: one token to ask with, one to get the next pair with."""

    account: Account
    access: str
    refresh: str
    seconds: int  # that the access token lives


async def login(identity: Identity, caller: Caller, email: str, password: str) -> Tokens:
    """Let a user in; Unauthenticated for a wrong pair, whichever half is wrong."""
    name = email.lower() if is_email(email) else "no e-mail address"
    door = Door(caller, name)
    await count_try(identity, door)
    known = await _find(identity, name)
    hashed = known.password_hash if known and known.account.disabled_at is None else None
    right = await identity.hasher.verify(password, hashed)
    fresh = await _rehashed(identity, password, hashed) if right else None
    tokens = None
    async with changing(identity.store) as change:
        now = identity.now()
        found = await change.accounts.get(known.account.id) if known and right else None
        if found is None or found.password_hash != hashed or found.account.disabled_at is not None:
            await count_failure(change.logins, door, now)
            error = Unauthenticated("the e-mail address or the password is wrong")
            change.refuse(error, caller.deed(now, "auth.login", name, refused=str(error)))
        else:
            await count_success(change.logins, door, now)
            if fresh is not None:
                await change.accounts.set_password(found.account.id, fresh)
            tokens = await open_login(identity, change, caller, found.account)
            change.tell(caller.known_as(found.account).deed(now, "auth.login", name))
    assert tokens is not None, "a refusal is raised"
    return tokens


async def _find(identity: Identity, email: str) -> Login | None:
    async with identity.store.transaction() as tx:
        return await tx.identity.accounts.login(email)


async def _rehashed(identity: Identity, password: str, stored: str | None) -> str | None:
    outdated = stored is not None and identity.hasher.is_outdated(stored)
    return await identity.hasher.hash(password) if outdated else None


async def open_login(
    identity: Identity, change: Change, caller: Caller, account: Account
) -> Tokens:
    """Begin a family of tokens within a change."""
    now = identity.now()
    shown = identity.fresh(Prefix.REFRESH)
    family = RefreshFamily(
        id=hash_secret(shown.id),
        account_id=account.id,
        address=caller.address,
        created_at=now,
        expires_at=now + identity.config.login_days * DAY_SECONDS * SECOND,
    )
    await change.logins.add(family)
    return await _next_tokens(identity, change, account, shown)


async def _next_tokens(
    identity: Identity, change: Change, account: Account, shown: Shown
) -> Tokens:
    token = RefreshToken(
        hash=hash_secret(shown.secret), family_id=hash_secret(shown.id), created_at=identity.now()
    )
    await change.logins.add_token(token)
    seconds = identity.config.access_seconds
    access = identity.signer.sign(ACCESS, account.id, seconds, sid=shown.id)
    return Tokens(account=account, access=access, refresh=shown.text, seconds=seconds)


async def refresh(identity: Identity, caller: Caller, token: str) -> Tokens:
    """The next pair of tokens for a refresh token, which is used up by that.

    One that was used before is in somebody else's hands too: the whole family ends.
    """
    shown = read_shown(token)
    if shown is None or shown.prefix is not Prefix.REFRESH:
        raise _refused()
    async with identity.store.transaction() as tx:  # no lock is taken for what never was a token
        known = await tx.identity.logins.token(hash_secret(shown.secret))
    tokens = None
    if known is not None:
        async with changing(identity.store) as change:
            tokens = await _rotate(identity, change, caller, shown)
    if tokens is None:
        raise _refused()
    return tokens


async def _rotate(
    identity: Identity, change: Change, caller: Caller, shown: Shown
) -> Tokens | None:
    now = identity.now()
    known = await change.logins.token(hash_secret(shown.secret))
    if known is None or known[0].id != hash_secret(shown.id) or not known[0].is_live(now):
        return None
    family, token = known
    found = await change.accounts.get(family.account_id)
    if found is None or found.account.disabled_at is not None:
        return None
    caller = caller.known_as(found.account)
    if not await change.logins.use_token(token.hash, now):
        await change.logins.revoke([family.id], now)
        refused = "used before: the login has ended"
        change.tell(caller.deed(now, "auth.refresh", family.account_id, refused=refused))
        return None
    change.tell(caller.deed(now, "auth.refresh", family.account_id))
    following = Shown(Prefix.REFRESH, shown.id, identity.entropy.secret())
    return await _next_tokens(identity, change, found.account, following)


def _refused() -> Unauthenticated:
    return Unauthenticated("the refresh token is unknown, used or expired: log in again")


async def logout(identity: Identity, caller: Caller) -> None:
    """End the login that asks, and with it its access token, at once."""
    _check_is_user(caller)
    async with changing(identity.store) as change:
        now = identity.now()
        await change.logins.revoke([caller.principal.credential], now)
        change.tell(caller.deed(now, "auth.logout", caller.principal.id))


async def change_password(identity: Identity, caller: Caller, current: str, new: str) -> None:
    """Replace a password by whoever knows it; the other logins of the account end."""
    _check_is_user(caller)
    account_id = caller.principal.id
    door = Door(caller, account_id)
    await count_try(identity, door)
    async with identity.store.transaction() as tx:
        known = await tx.identity.accounts.get(account_id)
    assert known is not None, "who asks has an account"
    check_password(new, known.account.email or "", "new")
    right = await identity.hasher.verify(current, known.password_hash)
    hashed = await identity.hasher.hash(new)
    async with changing(identity.store) as change:
        now = identity.now()
        # Hashing takes a while: an administrator may have set another password meanwhile.
        if right and await change.accounts.get(account_id) == known:
            await count_success(change.logins, door, now)
            await change.accounts.set_password(account_id, hashed)
            await change.logins.revoke_of(account_id, now, keep=caller.principal.credential)
            change.tell(caller.deed(now, "auth.password", account_id))
        else:
            await count_failure(change.logins, door, now)
            error = Conflict("the current password is wrong", code="WRONG_PASSWORD")
            change.refuse(error, caller.deed(now, "auth.password", account_id, refused=str(error)))


def _check_is_user(caller: Caller) -> None:
    if caller.principal.kind is not PrincipalKind.USER:
        raise Conflict("only who logged in with a password can do this", code="NOT_LOGGED_IN")
