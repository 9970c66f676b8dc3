"""Who has which role in a namespace, and the namespaces themselves."""

from __future__ import annotations

from tidemill.domain.errors import Conflict
from tidemill.domain.identifiers import SECOND
from tidemill.domain.identity import Account, AccountKind, Invitation, Namespace, Registration
from tidemill.domain.identity_rules import email_of, is_email, namespace_of
from tidemill.domain.permissions import Role
from tidemill.domain.secrets_shown import Prefix, hash_secret
from tidemill.engine.identity.accounts import give_role
from tidemill.engine.identity.changing import Change, changing
from tidemill.engine.identity.context import Caller, Identity, check_id, check_may_give, missing
from tidemill.engine.identity.logins import DAY_SECONDS


async def set_member(identity: Identity, caller: Caller, who: str, role: Role) -> Account:
    """Give a user, by id or e-mail address, a role in the namespace of the request."""
    check_may_give(caller, caller.namespace, role)
    async with changing(identity.store) as change:
        now = identity.now()
        account = await _find(change, caller, who)
        await give_role(change, caller, account.id, caller.namespace, role, now)
        change.tell(caller.deed(now, "member.set", account.id, role=role))
    return account


async def _find(change: Change, caller: Caller, who: str) -> Account:
    if is_email(who):
        found = await change.accounts.login(who.lower())
    else:
        found = await change.accounts.get(check_id("account", who))
    if found is None or not _can_be_member(found.account, caller.namespace):
        raise missing("account", who)
    return found.account


def _can_be_member(account: Account, namespace: str) -> bool:
    """A service account belongs to one namespace and stays there."""
    return account.kind is AccountKind.USER or account.namespace == namespace


async def remove_member(identity: Identity, caller: Caller, account_id: str) -> None:
    """Take the role in the namespace of the request away."""
    check_id("member", account_id)
    async with changing(identity.store) as change:
        if not await change.accounts.drop_role(account_id, caller.namespace):
            raise missing("member", account_id)
        change.tell(caller.deed(identity.now(), "member.remove", account_id))


async def invite(
    identity: Identity, caller: Caller, role: Role, email: str | None
) -> tuple[Invitation, str]:
    """Leave for somebody to register with a role in the namespace of the request."""
    check_may_give(caller, caller.namespace, role)
    if identity.config.registration is Registration.OFF:
        fix = "start the server with `--registration invitation`, or make the account for them"
        raise Conflict(f"nobody can register here, invited or not: {fix}", code="REGISTRATION_OFF")
    shown = identity.fresh(Prefix.INVITATION)
    now = identity.now()
    invitation = Invitation(
        id=shown.id,
        secret_hash=hash_secret(shown.secret),
        namespace=caller.namespace,
        role=role,
        created_at=now,
        created_by=caller.principal.id,
        expires_at=now + identity.config.invitation_days * DAY_SECONDS * SECOND,
        email=None if email is None else email_of(email),
    )
    async with changing(identity.store) as change:
        await change.keys.invite(invitation)
        change.tell(caller.deed(now, "invitation.create", shown.id, role=role))
    return invitation, shown.text


async def withdraw(identity: Identity, caller: Caller, invitation_id: str) -> None:
    """Take back an invitation that was not used yet."""
    check_id("open invitation", invitation_id)
    async with changing(identity.store) as change:
        if not await change.keys.drop_invitation(caller.namespace, invitation_id):
            raise missing("open invitation", invitation_id)
        change.tell(caller.deed(identity.now(), "invitation.withdraw", invitation_id))


async def create_namespace(
    identity: Identity, caller: Caller, name: str, default_executor: str | None
) -> Namespace:
    """Make a namespace; nobody has a role in it yet but those who have one everywhere."""
    namespace = Namespace(
        name=namespace_of(name),
        created_at=identity.now(),
        created_by=caller.principal.id,
        default_executor=default_executor,
    )
    async with changing(identity.store) as change:
        if not await change.settings.add_namespace(namespace):
            raise Conflict(f"there is a namespace {name} already", code="ALREADY_EXISTS")
        change.tell(caller.deed(identity.now(), "namespace.create", name))
    return namespace


async def change_namespace(identity: Identity, caller: Caller, namespace: Namespace) -> Namespace:
    """Save changed settings of a namespace."""
    async with changing(identity.store) as change:
        if not await change.settings.save_namespace(namespace):
            raise missing("namespace", namespace.name)
        executor = namespace.default_executor or ""
        deed = caller.deed(identity.now(), "namespace.change", namespace.name, executor=executor)
        change.tell(deed)
    return namespace
