"""Who asks: a person, a program, a worker or nobody, and what follows from that."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidemill.domain.identifiers import Moment, Token
from tidemill.domain.permissions import GRANTS, SYSTEM_NAMESPACE, Permission, Role, permits

DEFAULT_NAMESPACE = "default"


class PrincipalKind(StrEnum):
    """What somebody who asks is."""

    USER = "user"  # a person, by an access token
    KEY = "key"  # a person's program, by an API key
    SERVICE = "service"  # a service account, by an API key
    WORKER = "worker"  # a worker, by its credential: works, and asks for nothing else
    TASK = "task"  # one attempt of one task, by its token
    SINGLE_USER = "single_user"  # whoever reaches a server for one user
    ANONYMOUS = "anonymous"  # nobody is known, and nobody needs to be


POWERLESS = frozenset({PrincipalKind.WORKER, PrincipalKind.TASK, PrincipalKind.ANONYMOUS})
"""No route of the API that asks for anything is for them."""


class TaskAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The one attempt that a task's token speaks for."""

    token: Token
    workflow: str
    task: str  # its id in the workflow
    attempt: int


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who was recognised, and the roles by namespace that hold for this request."""

    id: str  # of the account; of the credential for workers and tasks
    name: str
    kind: PrincipalKind = PrincipalKind.USER
    memberships: dict[str, Role] = {}
    namespace: str = DEFAULT_NAMESPACE  # the one that a request is about when it names none
    bound: bool = False  # no other namespace can be asked for
    scopes: frozenset[Permission] | None = None  # less than the roles would give
    credential: str = ""  # the id of the key or login that was shown
    queues: tuple[str, ...] = ()  # what a worker may serve
    expires_at: Moment | None = None  # of the credential
    attempt: TaskAttempt | None = None  # of a task

    def may(self, namespace: str, permission: Permission) -> bool:
        """Whether this may be done there."""
        if self.kind in POWERLESS:
            return False
        if self.bound and namespace != self.namespace:
            return False
        if self.scopes is not None and permission not in self.scopes:
            return False
        return permits(self.memberships, namespace, permission)

    def permissions(self, namespace: str) -> frozenset[Permission]:
        """Everything that may be done there."""
        return frozenset(one for one in Permission if self.may(namespace, one))

    def may_give(self, namespace: str, role: Role) -> bool:
        """Whether it may make somebody this: nobody hands out more than they have themselves."""
        return all(
            self.may(namespace, permission)
            for permission in GRANTS[role]
            if permits({namespace: role}, namespace, permission)
        )


SINGLE_USER = Principal(
    id="single-user",
    name="single user",
    kind=PrincipalKind.SINGLE_USER,
    memberships={SYSTEM_NAMESPACE: Role.ADMIN},
)
"""The one person at this machine: nobody else can reach the process, so there is no login."""

ANONYMOUS = Principal(id="anonymous", name="anonymous", kind=PrincipalKind.ANONYMOUS)
"""Who asks where everybody may."""


def home_of(memberships: dict[str, Role]) -> str:
    """The namespace that a request is about when it does not say: the only one, or the default."""
    return next(iter(memberships)) if _is_one_tenant(memberships) else DEFAULT_NAMESPACE


def _is_one_tenant(memberships: dict[str, Role]) -> bool:
    return len(memberships) == 1 and SYSTEM_NAMESPACE not in memberships
