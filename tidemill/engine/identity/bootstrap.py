"""The first administrator, by a token that works once; and the key that signs tokens."""

from __future__ import annotations

from tidemill.domain.errors import Conflict, Forbidden, TidemillError
from tidemill.domain.permissions import SYSTEM_NAMESPACE, Role
from tidemill.domain.secrets_shown import Prefix, Shown, hash_secret, is_secret
from tidemill.engine.identity.accounts import Person, add_user, give_role, new_user
from tidemill.engine.identity.attempts import Door, count_try
from tidemill.engine.identity.changing import changing
from tidemill.engine.identity.context import Caller, Identity, wrong
from tidemill.engine.identity.logins import Tokens, open_login
from tidemill.ports.entropy import Entropy
from tidemill.ports.identity import AccountTable, SettingTable
from tidemill.ports.store import Store

TOKEN = "bootstrap"  # noqa: S105 - the name of the value
SIGNING_KEY = "signing_key"
DONE = "done"
TOKEN_CHARACTERS_MIN = 24


async def signing_key(store: Store, entropy: Entropy) -> bytes:
    """The key that all processes on this store sign with, made by the first of them."""
    async with store.transaction() as tx:
        kept = await tx.identity.settings.keep(SIGNING_KEY, entropy.secret())
    return bytes.fromhex(kept)


async def has_signing_key(store: Store) -> bool:
    """Whether some process on this store has made one."""
    async with store.transaction() as tx:
        return await tx.identity.settings.value(SIGNING_KEY) is not None


async def prepare_bootstrap(store: Store, entropy: Entropy, given: str | None) -> str | None:
    """The token for the first administrator, while there is none; None once there is one.

    A process that starts before that replaces the token of the one before it, unless one is given.
    """
    if given is not None and len(given) < TOKEN_CHARACTERS_MIN:
        raise wrong(
            "TIDEMILL_BOOTSTRAP_TOKEN", f"must have at least {TOKEN_CHARACTERS_MIN} characters"
        )
    async with store.transaction() as tx:
        await tx.identity.audit.lock()
        if await _state(tx.identity.settings, tx.identity.accounts) == DONE:
            await tx.identity.settings.replace(TOKEN, DONE)
            return None
        token = given or Shown(Prefix.BOOTSTRAP, entropy.session_id(), entropy.secret()).text
        await tx.identity.settings.replace(TOKEN, hash_secret(token))
    return token


async def bootstrap(identity: Identity, caller: Caller, token: str, person: Person) -> Tokens:
    """Make the first administrator and let them in; of two at once, one."""
    await count_try(identity, Door(caller, "bootstrap"))
    await _check(identity, caller, token)  # before a password is hashed for somebody unknown
    new = await new_user(identity, person.checked(), "")
    async with changing(identity.store) as change:
        now = identity.now()
        refused = _refusal(await _state(change.settings, change.accounts), token)
        if refused is not None:
            raise refused
        await add_user(change, new)
        await give_role(change, caller, new.account.id, SYSTEM_NAMESPACE, Role.ADMIN, now)
        await change.settings.replace(TOKEN, DONE)
        change.tell(caller.known_as(new.account).deed(now, "auth.bootstrap", new.account.id))
        return await open_login(identity, change, caller, new.account)


async def _check(identity: Identity, caller: Caller, token: str) -> None:
    async with changing(identity.store) as change:
        refused = _refusal(await _state(change.settings, change.accounts), token)
        if refused is not None:
            deed = caller.deed(identity.now(), "auth.bootstrap", refused=str(refused))
            change.refuse(refused, deed)


async def _state(settings: SettingTable, accounts: AccountTable) -> str | None:
    """The hash of the token, DONE, or None before the first start; an administrator ends it."""
    return DONE if await accounts.count_admins() else await settings.value(TOKEN)


def _refusal(state: str | None, token: str) -> TidemillError | None:
    if state == DONE:
        return Conflict("there is an administrator already: log in", code="ALREADY_DONE")
    if state is None or not is_secret(token, state):
        return Forbidden("this is not the bootstrap token", code="WRONG_TOKEN")
    return None
