"""Who there is and what they may do: for administrators."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tidemill.client.calls import Calls, place
from tidemill.domain.permissions import Role
from tidemill.protocol.resources.identity import (
    AddMember,
    AuditVerdict,
    AuditView,
    ChangeNamespace,
    ChangeUser,
    CreateKey,
    CreateNamespace,
    CreateServiceAccount,
    CreateUser,
    InvitationView,
    Invite,
    KeyView,
    MemberView,
    NamespaceView,
    NewInvitationView,
    NewKeyView,
    ServiceAccountView,
    SetMember,
    UserView,
)


class IdentityCalls(Calls):
    """Users, members, service accounts, keys, namespaces and the audit log."""

    def users(self, limit: int | None = None) -> AsyncIterator[UserView]:
        """Accounts of people, with their roles."""
        return self._pages(place("users"), UserView, {}, limit)

    async def user(self, user_id: str) -> UserView:
        """One account, with its roles."""
        return await self._get(place("users", user_id), UserView)

    async def create_user(self, wanted: CreateUser) -> UserView:
        """Make an account for somebody."""
        return await self._post(place("users"), UserView, wanted, repeatable=False)

    async def change_user(self, user_id: str, change: ChangeUser) -> UserView:
        """Disable or enable an account, set its password or its role everywhere."""
        return await self._change("PATCH", place("users", user_id), UserView, change)

    def invitations(self, limit: int | None = None) -> AsyncIterator[InvitationView]:
        """Invitations that were given."""
        return self._pages(place("invitations"), InvitationView, {}, limit)

    async def invite(self, wanted: Invite) -> NewInvitationView:
        """Invite somebody into the namespace; the secret is shown this once."""
        return await self._post(place("invitations"), NewInvitationView, wanted, repeatable=False)

    async def withdraw_invitation(self, invitation_id: str) -> None:
        """Take an invitation back."""
        await self._send("DELETE", place("invitations", invitation_id))

    def members(self, limit: int | None = None) -> AsyncIterator[MemberView]:
        """Who has a role in the namespace."""
        return self._pages(place("members"), MemberView, {}, limit)

    async def add_member(self, email: str, role: Role) -> MemberView:
        """Give a user a role in the namespace."""
        return await self._post(place("members"), MemberView, AddMember(email=email, role=role))

    async def set_member(self, account_id: str, role: Role) -> MemberView:
        """Give a member another role."""
        path = place("members", account_id)
        return await self._change("PUT", path, MemberView, SetMember(role=role))

    async def remove_member(self, account_id: str) -> None:
        """Take somebody's role in the namespace away."""
        await self._send("DELETE", place("members", account_id))

    def service_accounts(self, limit: int | None = None) -> AsyncIterator[ServiceAccountView]:
        """Accounts of programs."""
        return self._pages(place("service-accounts"), ServiceAccountView, {}, limit)

    async def create_service_account(self, name: str, role: Role) -> ServiceAccountView:
        """Make an account for a program."""
        body = CreateServiceAccount(name=name, role=role)
        path = place("service-accounts")
        return await self._post(path, ServiceAccountView, body, repeatable=False)

    async def disable_service_account(self, account_id: str) -> None:
        """End an account of a program, and its keys with it."""
        await self._send("DELETE", place("service-accounts", account_id))

    def keys(self, limit: int | None = None) -> AsyncIterator[KeyView]:
        """API keys and credentials of workers, without their secrets."""
        return self._pages(place("keys"), KeyView, {}, limit)

    async def create_key(self, wanted: CreateKey) -> NewKeyView:
        """Make an API key; its secret is shown this once."""
        return await self._post(place("keys"), NewKeyView, wanted, repeatable=False)

    async def revoke_key(self, key_id: str) -> None:
        """End a key, at once and everywhere."""
        await self._send("DELETE", place("keys", key_id))

    def namespaces(self, limit: int | None = None) -> AsyncIterator[NamespaceView]:
        """Namespaces that one may see."""
        return self._pages(place("namespaces"), NamespaceView, {}, limit)

    async def namespace(self, name: str) -> NamespaceView:
        """One namespace."""
        return await self._get(place("namespaces", name), NamespaceView)

    async def create_namespace(
        self, name: str, default_executor: str | None = None
    ) -> NamespaceView:
        """Make a namespace."""
        body = CreateNamespace(name=name, default_executor=default_executor)
        return await self._post(place("namespaces"), NamespaceView, body, repeatable=False)

    async def change_namespace(self, name: str, default_executor: str | None) -> NamespaceView:
        """Set the executor of tasks that name none; None for the built-in one."""
        body = ChangeNamespace(default_executor=default_executor)
        return await self._change("PATCH", place("namespaces", name), NamespaceView, body)

    def audit(
        self,
        limit: int | None = None,
        *,
        action: str | None = None,
        actor: str | None = None,
        everywhere: bool = False,
    ) -> AsyncIterator[AuditView]:
        """Who changed what, newest first."""
        query = {"action": action, "actor": actor, "everywhere": everywhere or None}
        return self._pages(place("audit"), AuditView, query, limit)

    async def verify_audit(self) -> AuditVerdict:
        """Whether the chain of the audit log holds."""
        return await self._get(place("audit", "verify"), AuditVerdict)
