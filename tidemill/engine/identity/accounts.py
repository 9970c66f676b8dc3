"""Users: made, looked at, changed, disabled; registered by themselves where that is allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tidemill.domain.errors import Conflict, Forbidden
from tidemill.domain.identifiers import Moment
from tidemill.domain.identity import Account, AccountKind, Invitation, Membership, Registration
from tidemill.domain.identity_rules import check_password, email_of, name_of
from tidemill.domain.permissions import SYSTEM_NAMESPACE, Permission, Role
from tidemill.domain.principals import PrincipalKind
from tidemill.domain.secrets_shown import Prefix, is_secret, read_shown
from tidemill.engine.identity.attempts import Door, count_try
from tidemill.engine.identity.changing import Change, changing
from tidemill.engine.identity.context import Caller, Identity, check_id, check_may_give, missing
from tidemill.engine.identity.principals import principal_of_login
from tidemill.ports.identity import NewAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody about to have an account."""

    email: str
    password: str
    name: str = ""

    def checked(self) -> Person:
        """The same in the form that is stored; InvalidInput when something is wrong."""
        email = email_of(self.email)
        name = name_of(self.name or email.partition("@")[0])
        check_password(self.password, email)
        return Person(email=email, password=self.password, name=name)


async def create_user(
    identity: Identity, caller: Caller, person: Person, role: Role | None = None
) -> Account:
    """Make an account for somebody, with a role everywhere when one is given."""
    if role is not None:
        check_may_give(caller, SYSTEM_NAMESPACE, role)
    new = await new_user(identity, person.checked(), caller.principal.id)
    await _check_still_may(identity, caller)
    async with changing(identity.store) as change:
        now = identity.now()
        await add_user(change, new)
        if role is not None:
            await give_role(change, caller, new.account.id, SYSTEM_NAMESPACE, role, now)
        change.tell(caller.deed(now, "user.create", new.account.id, role=role or "none"))
    return new.account


async def _check_still_may(identity: Identity, caller: Caller) -> None:
    """Forbidden for who lost the right to it while a password was hashed: that may take a while."""
    if caller.principal.kind is not PrincipalKind.USER:
        return  # without login, nobody can lose anything; a key never has the right
    login = caller.principal.credential
    holder = (await identity.store.identity.family_holders([login])).get(login)
    found = None if holder is None else principal_of_login(holder, identity.now())
    if found is None or not found.may(SYSTEM_NAMESPACE, Permission.USERS_WRITE):
        raise Forbidden(f"this needs {Permission.USERS_WRITE}, which is yours no longer")


async def new_user(identity: Identity, person: Person, created_by: str) -> NewAccount:
    """An account that is not stored yet; `created_by` is empty for those who make it themselves."""
    account_id = identity.fresh_id()
    account = Account(
        id=account_id,
        kind=AccountKind.USER,
        name=person.name,
        email=person.email,
        created_at=identity.now(),
        created_by=created_by or account_id,
    )
    return NewAccount(account, await identity.hasher.hash(person.password))


async def add_user(change: Change, new: NewAccount) -> None:
    """Store it; Conflict when the address is taken."""
    if not await change.accounts.add(new):
        raise Conflict(f"there is a user {new.account.email} already", code="ALREADY_EXISTS")


async def give_role(
    change: Change, caller: Caller, account_id: str, namespace: str, role: Role, now: Moment
) -> None:
    """Give a role within a change."""
    membership = Membership(
        account_id=account_id,
        namespace=namespace,
        role=role,
        created_at=now,
        created_by=caller.principal.id,
    )
    await change.accounts.set_role(membership)


async def register(
    identity: Identity, caller: Caller, person: Person, invitation: str | None
) -> Account:
    """Make an account for oneself.

    Without an invitation it has no role anywhere, so that nobody gets in by being the first to ask.
    """
    mode = identity.config.registration
    if mode is Registration.OFF or (mode is Registration.INVITATION and invitation is None):
        how = "ask an administrator for an account"
        if mode is Registration.INVITATION:
            how = "ask an administrator for an invitation, and send it along"
        raise Forbidden(f"nobody can register here by themselves: {how}", code="REGISTRATION_OFF")
    await count_try(identity, Door(caller, "register"))
    new = await new_user(identity, person.checked(), "")
    async with changing(identity.store) as change:
        now = identity.now()
        invited = await _invitation(change, invitation or "", new.account, now)
        if invitation is not None and invited is None:
            text = "the invitation is unknown, used, expired or for another address"
            error = Forbidden(text, code="INVITATION_INVALID")
            deed = caller.deed(now, "auth.register", new.account.email or "", refused=text)
            change.refuse(error, deed)
        else:
            await add_user(change, new)
            await _accept(change, caller, invited, (new.account, now))
    return new.account


async def _accept(
    change: Change, caller: Caller, invited: Invitation | None, new: tuple[Account, Moment]
) -> None:
    account, now = new
    if invited is not None:
        await change.keys.use_invitation(invited.id, account.id, now)
        await give_role(change, caller, account.id, invited.namespace, invited.role, now)
    by = invited.id if invited else ""
    change.tell(caller.known_as(account).deed(now, "auth.register", account.id, invitation=by))


async def _invitation(
    change: Change, text: str, account: Account, now: Moment
) -> Invitation | None:
    """The invitation, if it holds; nobody else can use it up within this change."""
    shown = read_shown(text)
    if shown is None or shown.prefix is not Prefix.INVITATION:
        return None
    found = await change.keys.invitation(shown.id)
    if found is None or not is_secret(shown.secret, found.secret_hash):
        return None
    if found.used_at is not None or now >= found.expires_at:
        return None
    return found if found.email in {None, account.email} else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChange:
    """What to change about a user; None leaves it as it is."""

    disabled: bool | None = None
    password: str | None = None
    role: Role | None = None
    no_role: bool = False  # take the role that holds everywhere away


async def change_user(
    identity: Identity, caller: Caller, account_id: str, wanted: UserChange
) -> None:
    """Change a user; who is disabled, or has a new password, is out with their next request."""
    check_id("user", account_id)
    hashed = None
    if wanted.role is not None:
        check_may_give(caller, SYSTEM_NAMESPACE, wanted.role)
    if wanted.password is not None:
        check_password(wanted.password, await _email(identity, account_id))
        hashed = await identity.hasher.hash(wanted.password)
        await _check_still_may(identity, caller)
    async with changing(identity.store) as change:
        now = identity.now()
        known = await change.accounts.get(account_id)
        if known is None or known.account.kind is not AccountKind.USER:
            raise missing("user", account_id)
        async with _admin_left(change):
            await _apply(change, caller, account_id, wanted, now)
        if hashed is not None:
            await change.accounts.set_password(account_id, hashed)
        if hashed is not None or wanted.disabled:
            await change.logins.revoke_of(account_id, now)
        change.tell(caller.deed(now, "user.change", account_id, **_told(wanted)))


async def _email(identity: Identity, account_id: str) -> str:
    found = await identity.store.identity.account(account_id)
    return (found[0].email or "") if found else ""


async def _apply(
    change: Change, caller: Caller, account_id: str, wanted: UserChange, now: Moment
) -> None:
    if wanted.disabled is not None:
        await change.accounts.set_disabled(account_id, now if wanted.disabled else None)
    if wanted.role is not None:
        await give_role(change, caller, account_id, SYSTEM_NAMESPACE, wanted.role, now)
    elif wanted.no_role:
        await change.accounts.drop_role(account_id, SYSTEM_NAMESPACE)
    if wanted.disabled or wanted.no_role or wanted.role not in {None, Role.ADMIN}:
        # Who may invite no longer must not come back as somebody else.
        await change.keys.drop_invitations_by(account_id)


@asynccontextmanager
async def _admin_left(change: Change) -> AsyncIterator[None]:
    """Conflict when nobody is left after a block who can give roles back, and there was."""
    before = await change.accounts.count_admins()
    yield
    if before and not await change.accounts.count_admins():
        raise Conflict("this is the last administrator: make another one first", code="LAST_ADMIN")


def _told(wanted: UserChange) -> dict[str, str]:
    told = {
        "disabled": "" if wanted.disabled is None else str(wanted.disabled).lower(),
        "password": "changed" if wanted.password is not None else "",
        "role": "none" if wanted.no_role else (wanted.role or ""),
    }
    return {name: text for name, text in told.items() if text}
