"""Who is let in: credentials, the guards of single-user mode, and origins of browsers.

Nothing here looks at paths: what a request may do is decided by the endpoint it was matched to.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from tidemill.api.call import Call
from tidemill.api.limits import Crowd, Limiter
from tidemill.domain.errors import Forbidden, InvalidInput, NotFound, Problem, Unauthenticated
from tidemill.domain.permissions import Permission
from tidemill.domain.principals import (
    ANONYMOUS,
    DEFAULT_NAMESPACE,
    SINGLE_USER,
    Principal,
    PrincipalKind,
)
from tidemill.domain.problems import show
from tidemill.domain.workflow import NAME_CHARACTERS_MAX, NAME_PATTERN
from tidemill.ports.store import Store

NAMESPACE_HEADER = "Tidemill-Namespace"
ORDINARY_PORTS = {"http": 80, "https": 443}
REQUESTS_EACH_MAX = 1_000
STREAMS_EACH_MAX = 200
"""Of one account at once: a part of what a process takes from all of them."""

_NAME = re.compile(NAME_PATTERN)
_UNCOUNTED = frozenset({PrincipalKind.SINGLE_USER, PrincipalKind.ANONYMOUS})


class Authenticator(Protocol):
    """Recognises who asks. Asked anew for every request: what is withdrawn holds no longer."""

    async def authenticate(self, authorization: str | None) -> Principal | None:
        """Who sent this Authorization header; None without one, Unauthenticated when it is bad."""

    async def is_there(self, namespace: str) -> bool:
        """Whether there is such a namespace; asked for those that a request names itself."""


class SingleUser:
    """Everybody who gets through is the one user of this machine."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store

    async def authenticate(self, authorization: str | None) -> Principal | None:
        """The single user, whatever is sent."""
        return SINGLE_USER

    async def is_there(self, namespace: str) -> bool:
        """Whether it was made: in one that was misspelt, runs would wait unseen. All, storeless."""
        there = self._store is None or await self._store.identity.namespaces_there([namespace])
        return bool(there)


class Guard(Protocol):
    """Looks at every request before anything else does."""

    def check(self, headers: Mapping[bytes, bytes], scheme: str) -> None:
        """Forbidden when the request must not go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopbackGuard:
    """Keeps web pages of others away from a server that needs no login.

    A page may send requests to a server on this machine, by its address or under a name of its own
    that leads there. The browser says so in Host and Origin.
    """

    port: int
    hosts: frozenset[str] = frozenset()  # names besides those of this machine

    def check(self, headers: Mapping[bytes, bytes], scheme: str) -> None:
        """Forbidden for a foreign Host or Origin."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_own(host, scheme):
            raise Forbidden(
                f"Host {show(host)} is not this server: without login it answers to localhost, "
                f"127.0.0.1 and [::1] with port {self.port} only",
                code="FOREIGN_HOST",
            )
        origin = headers.get(b"origin")
        if origin is not None and origin != f"{scheme}://{host}".encode("latin-1"):
            raise Forbidden(
                f"pages of {show(origin.decode('latin-1'))} may not use this server without login",
                code="FOREIGN_ORIGIN",
            )

    def _is_own(self, text: str, scheme: str) -> bool:
        name, colon, port = text.rpartition(":")
        if not colon or "]" in port:  # no port: the ordinary one of the scheme
            name, port = text, str(ORDINARY_PORTS.get(scheme, 0))
        if port != str(self.port):
            return False
        return name.lower() in self.hosts or is_loopback(name.lower())


def is_loopback(host: str) -> bool:
    """Whether a host, as it stands in a URL, is this machine by a name that nobody can give away.

    Of 127.0.0.0/8 only 127.0.0.1: other spellings have no reason to be there.
    """
    if host in {"localhost", "127.0.0.1"}:
        return True
    if not (host.startswith("[") and host.endswith("]")):
        return False
    try:
        return ipaddress.IPv6Address(host[1:-1]) == ipaddress.IPv6Address("::1")
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Everything that stands between the network and a handler."""

    authenticator: Authenticator = field(default_factory=SingleUser)
    guard: Guard | None = None
    limiter: Limiter | None = None
    askers: Crowd = field(default_factory=lambda: Crowd(REQUESTS_EACH_MAX, "requests"))
    streamers: Crowd = field(default_factory=lambda: Crowd(STREAMS_EACH_MAX, "streams"))
    cors_origins: frozenset[str] = frozenset()
    tls: bool = False

    async def admit(self, call: Call, permission: Permission | None, *, public: bool) -> None:
        """Set the principal of a call, and let it through or raise."""
        if public:
            call.principal, call.namespace = ANONYMOUS, DEFAULT_NAMESPACE
            self._limit(f"peer {call.peer}")
            return
        try:
            principal = await self._recognise(call)
        except Unauthenticated:
            if call.header("authorization") is not None:
                self._limit(f"peer {call.peer}")  # who guesses is slowed down
            raise
        self._limit(principal.id)
        await self._let_through(call, principal, permission)

    async def readmit(self, call: Call, permission: Permission | None) -> None:
        """Let a call that goes on for long through once more, or raise.

        That is no further request: nothing is counted.
        """
        await self._let_through(call, await self._recognise(call), permission)

    def place(self, call: Call, crowd: Crowd) -> AbstractContextManager[None]:
        """A place among all who ask, or stream, for whoever is one of many."""
        if call.principal.kind in _UNCOUNTED:
            return nullcontext()
        return crowd.inside(call.principal.id)

    async def _let_through(
        self, call: Call, principal: Principal, permission: Permission | None
    ) -> None:
        call.principal = principal
        named = _named_namespace(call)
        call.namespace = named or call.principal.namespace
        if permission is not None and not call.principal.may(call.namespace, permission):
            raise Forbidden(f"this needs {permission} in namespace {show(call.namespace)}")
        if named is not None and permission is not None:
            await self._check_there(named)

    async def _recognise(self, call: Call) -> Principal:
        found = await self.authenticator.authenticate(call.header("authorization"))
        if found is None:
            raise Unauthenticated(
                "credentials are needed: send `Authorization: Bearer <token or API key>`"
            )
        return found

    async def _check_there(self, namespace: str) -> None:
        if not await self.authenticator.is_there(namespace):
            raise NotFound(f"there is no namespace {show(namespace)}")

    def _limit(self, name: str) -> None:
        if self.limiter is not None:
            self.limiter.take(name)


def _named_namespace(call: Call) -> str | None:
    named = call.header(NAMESPACE_HEADER)
    if named is None:
        return None
    if len(named) > NAME_CHARACTERS_MAX or not _NAME.fullmatch(named):
        text = f"{show(named)} is not a name: use letters, digits, '.', '_' and '-'"
        raise InvalidInput([Problem(path=NAMESPACE_HEADER, message=text, code="BAD_NAME")])
    return named
