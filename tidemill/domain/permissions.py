"""Who may do what: every permission, and the roles that hold it. There is no other table."""

from __future__ import annotations

from enum import StrEnum


class Permission(StrEnum):
    """One thing that a principal may be allowed to do in a namespace."""

    WORKFLOWS_READ = "workflows:read"
    WORKFLOWS_WRITE = "workflows:write"  # deploy and delete definitions, run one that is sent along
    RUNS_READ = "runs:read"  # runs, tasks, jobs, results and their output
    RUNS_START = "runs:start"  # start what is deployed, and jobs of known types
    RUNS_CONTROL = "runs:control"  # cancel, pause, resume, retry
    DEAD_LETTERS_READ = "dead_letters:read"
    DEAD_LETTERS_CONTROL = "dead_letters:control"  # replay, discard
    WORKERS_READ = "workers:read"  # workers and queues
    EVENTS_READ = "events:read"
    METRICS_READ = "metrics:read"
    SECRETS_READ = "secrets:read"  # their names; values never leave
    SECRETS_WRITE = "secrets:write"
    MEMBERS_READ = "members:read"  # who has which role in the namespace
    MEMBERS_WRITE = "members:write"
    KEYS_READ = "keys:read"
    KEYS_WRITE = "keys:write"  # API keys, service accounts and credentials of workers
    AUDIT_READ = "audit:read"
    NAMESPACES_READ = "namespaces:read"
    NAMESPACES_WRITE = "namespaces:write"  # make namespaces, change their settings
    USERS_READ = "users:read"
    USERS_WRITE = "users:write"  # accounts of people, invitations


class Role(StrEnum):
    """What a principal is in a namespace; each role can do all that the one before it can."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"


_VIEWER = frozenset(
    {
        Permission.WORKFLOWS_READ,
        Permission.RUNS_READ,
        Permission.DEAD_LETTERS_READ,
        Permission.WORKERS_READ,
        Permission.EVENTS_READ,
        Permission.METRICS_READ,
        Permission.NAMESPACES_READ,
    }
)
_OPERATOR = _VIEWER | {
    Permission.RUNS_START,
    Permission.RUNS_CONTROL,
    Permission.DEAD_LETTERS_CONTROL,
}
_EDITOR = _OPERATOR | {
    Permission.WORKFLOWS_WRITE,
    Permission.SECRETS_READ,
    Permission.SECRETS_WRITE,
    Permission.MEMBERS_READ,
}

GRANTS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.EDITOR: _EDITOR,
    Role.ADMIN: frozenset(Permission),
}

SYSTEM_NAMESPACE = "*"
"""The namespace of a membership that holds everywhere; users and namespaces need one."""
EVERYWHERE = frozenset({Permission.USERS_READ, Permission.USERS_WRITE, Permission.NAMESPACES_WRITE})
"""Permissions that only a membership of SYSTEM_NAMESPACE gives."""


def permits(memberships: dict[str, Role], namespace: str, permission: Permission) -> bool:
    """Whether somebody with these roles, by namespace, may do this there."""
    everywhere = memberships.get(SYSTEM_NAMESPACE)
    if everywhere is not None and permission in GRANTS[everywhere]:
        return True
    if permission in EVERYWHERE:
        return False
    here = memberships.get(namespace)
    return here is not None and permission in GRANTS[here]
