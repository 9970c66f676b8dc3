"""Recognises who asks by the Authorization header, and by nothing else."""

from __future__ import annotations

from tidemill.domain.errors import Forbidden, Unauthenticated
from tidemill.domain.principals import POWERLESS, Principal
from tidemill.engine.identity.principals import Principals

CREDENTIAL_CHARACTERS_MAX = 4_096


class BearerAuthenticator:
    """Implements api.security.Authenticator for `Bearer` with an access token or an API key."""

    def __init__(self, principals: Principals) -> None:
        self._principals = principals

    async def authenticate(self, authorization: str | None) -> Principal | None:
        """Who sent this header; None without one.

        Unauthenticated when it is bad, Forbidden for workers and tasks: they are known, but no
        route is for them.
        """
        if authorization is None:
            return None
        principal = await self._principals.of(_credential(authorization))
        if principal.kind in POWERLESS:
            raise Forbidden(f"the credential of a {principal.kind} is for its own work only")
        return principal

    async def is_there(self, namespace: str) -> bool:
        """Whether there is such a namespace."""
        return await self._principals.is_there(namespace)


def _credential(authorization: str) -> str:
    scheme, _, credential = authorization.partition(" ")
    if scheme.lower() != "bearer" or len(credential) > CREDENTIAL_CHARACTERS_MAX:
        raise Unauthenticated("send `Authorization: Bearer <token or API key>`")
    return credential.strip()
