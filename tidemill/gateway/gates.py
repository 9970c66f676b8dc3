"""Gates: who stands behind a call, and what each of them may do.

Every call of every service passes a gate first, which leaves a principal for the handlers to ask.
Where none has passed, as by a mistake in putting the parts together, nobody may do anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeAlias

import grpc
import grpc.aio

from tidemill.domain.errors import Forbidden, TidemillError, Unauthenticated, Unavailable
from tidemill.domain.permissions import Permission
from tidemill.domain.principals import ANONYMOUS, POWERLESS, SINGLE_USER, Principal, PrincipalKind
from tidemill.domain.problems import show
from tidemill.gateway.errors import status_of
from tidemill.gateway.security import TokenCheck
from tidemill.ports.clock import Clock

SCHEME = "bearer"
FIRST_MESSAGE_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""How often the credential of an open stream is looked at again."""

AnyMethod: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Metadata: TypeAlias = Iterable[tuple[str, str | bytes]]
Still: TypeAlias = Callable[[], Awaitable[bool]]

log = logging.getLogger(__name__)
_caller: ContextVar[Principal] = ContextVar("tidemill_caller", default=ANONYMOUS)
_again: ContextVar[Callable[[], Awaitable[Principal]] | None] = ContextVar("again", default=None)


class Lookup(Protocol):
    """Recognises credentials: engine.identity.principals.Principals."""

    async def of(self, credential: str) -> Principal:
        """Whoever holds it; Unauthenticated when nobody does."""


class Gate(Protocol):
    """Decides who gets in."""

    async def admit(self, metadata: Metadata) -> Principal:
        """Who calls; Unauthenticated for whoever must stay outside."""

    def watch(self, metadata: Metadata) -> Still:
        """Asks whether whoever was let in would still be; for streams, which live long."""


class OpenGate:
    """Lets everybody in: the file system, or this machine, keeps others away."""

    async def admit(self, metadata: Metadata) -> Principal:
        """The one user there is."""
        return SINGLE_USER

    def watch(self, metadata: Metadata) -> Still:
        """For good."""
        return _always


class SharedTokens:
    """Lets in whoever knows a secret that workers and schedulers share, to everything."""

    def __init__(self, check: TokenCheck) -> None:
        self._check = check

    async def admit(self, metadata: Metadata) -> Principal:
        """Whoever it is; the secret tells no more."""
        if not self._check.accepts(bearer_of(metadata)):
            raise Unauthenticated("the token is not known here")
        return SINGLE_USER

    def watch(self, metadata: Metadata) -> Still:
        """Until the token is withdrawn."""
        token = bearer_of(metadata)

        async def still() -> bool:
            return self._check.accepts(token)

        return still


class IdentityGate:
    """Lets in whoever identity knows, by a credential of their own."""

    def __init__(self, lookup: Lookup, clock: Clock) -> None:
        self._lookup = lookup
        self._clock = clock
        self._looks: set[asyncio.Task[bool]] = set()

    async def admit(self, metadata: Metadata) -> Principal:
        """The principal, as of now."""
        return await self._lookup.of(bearer_of(metadata))

    def watch(self, metadata: Metadata) -> Still:
        """Until the credential is revoked or expires; looked at every few seconds.

        Nobody waits for the answer, which counts as soon as it is there: a store that hangs must
        not make a stream fall silent.
        """
        credential = bearer_of(metadata)
        looked_at = self._clock.monotonic()
        look: asyncio.Task[bool] | None = None

        async def still() -> bool:
            nonlocal looked_at, look
            if look is not None and look.done():
                known, look = look.result(), None
                return known
            now = self._clock.monotonic()
            if look is None and now - looked_at >= LOOK_SECONDS:
                looked_at, look = now, self._look(credential)
            return True

        return still

    def _look(self, credential: str) -> asyncio.Task[bool]:
        look = asyncio.create_task(self._is_known(credential))
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)
        return look

    async def _is_known(self, credential: str) -> bool:
        try:
            await self._lookup.of(credential)
        except Unauthenticated:
            return False
        except Unavailable:
            return True  # a store that is away for a moment must not cut everybody off
        return True


async def _always() -> bool:
    return True


class GateInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Stands before every method of every service, known or not."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[AnyMethod]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> AnyMethod:
        """Let the call through as whoever it is, or put a refusal in its place."""
        admit = partial(self._gate.admit, tuple(handler_call_details.invocation_metadata))
        try:
            # The handler runs in the same task, and so finds whom this has recognised.
            _caller.set(await admit())
        except TidemillError as error:
            return _refusal(error)
        _again.set(admit)
        return await continuation(handler_call_details)


def current_caller() -> Principal:
    """Who makes the call that is being served."""
    return _caller.get()


async def look_again() -> None:
    """For calls that live long: recognise the caller anew; Unauthenticated when that fails."""
    admit = _again.get()
    if admit is not None:
        with suppress(Unavailable):  # then whoever it was a moment ago
            _caller.set(await admit())


def check_may(namespace: str, permission: Permission) -> None:
    """Forbidden when the caller may not do this there."""
    if not _caller.get().may(namespace, permission):
        raise Forbidden(f"this needs {permission} in namespace {show(namespace)}")


def check_has_role() -> None:
    """Forbidden for whoever has no standing of their own; workers have theirs by their queues."""
    caller = _caller.get()
    has_role = caller.kind not in POWERLESS and bool(caller.memberships)
    if not has_role and caller.kind is not PrincipalKind.WORKER:
        raise Forbidden("this needs a role in some namespace")


def bearer_of(metadata: Metadata) -> str:
    """The token that a call carries; Unauthenticated says what is wrong with how it does."""
    given = [value for name, value in metadata if name == "authorization"]
    if not given:
        raise Unauthenticated("a token is needed: send it as `authorization: Bearer <token>`")
    scheme, _, token = str(given[0]).partition(" ")
    if len(given) > 1 or scheme.lower() != SCHEME:
        raise Unauthenticated("the token must be sent once, as `authorization: Bearer <token>`")
    return token.strip()


def _refusal(error: TidemillError) -> AnyMethod:
    async def refuse(
        requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> None:
        # A client that is refused in the middle of its first write may hear of an inner error
        # instead, and try again: let it finish.
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
                await anext(aiter(requests), None)
        log.warning("a call from %s is refused: %s", context.peer(), error)
        await context.abort(status_of(error), str(error))

    # Streams on both sides: this answers calls of every kind.
    return grpc.stream_stream_rpc_method_handler(refuse)
