"""Asks Tidemill who holds a credential: for services that are called with one."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from pathlib import Path
from typing import Self

import grpc
import grpc.aio
import msgspec

from tidemill.client.system import System
from tidemill.domain.errors import Forbidden, InvalidInput, Problem, Unauthenticated, Unavailable
from tidemill.domain.permissions import SYSTEM_NAMESPACE
from tidemill.protocol.certificates import read_certificates
from tidemill.protocol.generated import identity_pb2 as wire

METHOD = "/tidemill.identity.v1.Identity/ValidateToken"
CACHE_SECONDS_MAX = 5.0
CACHE_ENTRIES_MAX = 10_000
TIMEOUT_SECONDS_MAX = 60.0
TOKEN_CHARACTERS_MAX = 4_096

_OPTIONS = (("grpc.enable_http_proxy", 0),)


class ValidationConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a service asks."""

    cache_seconds: float = CACHE_SECONDS_MAX  # so long a revoked token may still be taken; 0: never
    timeout_seconds: float = 2.0
    tls: bool = False
    ca: Path | None = None  # of the scheduler's certificate; sets `tls` too

    def __post_init__(self) -> None:
        _check("cache_seconds", self.cache_seconds, 0, CACHE_SECONDS_MAX)
        _check("timeout_seconds", self.timeout_seconds, 0.01, TIMEOUT_SECONDS_MAX)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt of a task that calls."""

    run_id: str
    position: int
    epoch: int
    workflow: str
    task: str
    attempt: int


class TokenHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever holds a token that is valid now."""

    id: str
    name: str
    kind: str  # user, key, service, worker, task
    namespace: str  # that a request is about when it names none
    roles: dict[str, str] = {}  # by namespace; `*` is everywhere
    permissions: dict[str, frozenset[str]] = {}  # by namespace
    queues: tuple[str, ...] = ()  # of a worker
    expires_at: int | None = None  # microseconds since 1970; None: lives until it is revoked
    attempt: Attempt | None = None  # of a task

    def may(self, permission: str, namespace: str | None = None) -> bool:
        """Whether it may do this, such as `runs:read`, in a namespace, or in its own."""
        asked = (SYSTEM_NAMESPACE, namespace or self.namespace)
        return any(permission in self.permissions.get(one, ()) for one in asked)


class TokenValidator:
    """Asks a scheduler, over one channel; remembers a good answer for a few seconds.

    `credential` is this service's own: the API key of a service account, or a worker's credential.
    """

    def __init__(
        self,
        address: str,
        credential: str,
        config: ValidationConfig | None = None,
        system: System | None = None,
    ) -> None:
        self._config = config or ValidationConfig()
        self._system = system or System()
        self._metadata = (("authorization", f"Bearer {credential}"),)
        self._address = address
        self._roots = None if self._config.ca is None else read_certificates(self._config.ca)
        self._channel: grpc.aio.Channel | None = None  # belongs to the loop that first asks
        self._known: OrderedDict[bytes, tuple[float, TokenHolder]] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up; safe to call twice."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close(None)

    async def validate(self, token: str) -> TokenHolder | None:
        """Whoever holds the token; None when it is unknown, expired, revoked or over.

        Unavailable when Tidemill does not answer in time. Unauthenticated or Forbidden when it is
        this service itself that may not ask.
        """
        if not token or len(token) > TOKEN_CHARACTERS_MAX or not token.isascii():
            return None
        key = hashlib.sha256(token.encode()).digest()  # tokens themselves are not kept
        known = self._remembered(key)
        if known is not None:
            return known
        holder = _holder_of(await self._answer(token))
        if holder is not None:
            self._remember(key, holder)
        return holder

    async def _answer(self, token: str) -> wire.ValidateTokenResponse:
        request = wire.ValidateTokenRequest(token=token)
        try:
            answer: wire.ValidateTokenResponse = await self._open().unary_unary(
                METHOD,
                wire.ValidateTokenRequest.SerializeToString,
                wire.ValidateTokenResponse.FromString,
            )(request, metadata=self._metadata, timeout=self._config.timeout_seconds)
        except grpc.aio.AioRpcError as error:
            match error.code():
                case grpc.StatusCode.UNAUTHENTICATED:
                    text = "Tidemill does not know the credential of this service"
                    raise Unauthenticated(text) from None
                case grpc.StatusCode.PERMISSION_DENIED:
                    text = "the credential of this service has no role in Tidemill"
                    raise Forbidden(text) from None
                case code:
                    raise Unavailable(f"Tidemill does not tell who calls: {code.name}") from None
        return answer

    def _open(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = _open_channel(self._address, self._config.tls, self._roots)
        return self._channel

    def _remembered(self, key: bytes) -> TokenHolder | None:
        until, holder = self._known.get(key, (0.0, None))
        if holder is not None and self._system.monotonic() < until:
            return holder
        self._known.pop(key, None)
        return None

    def _remember(self, key: bytes, holder: TokenHolder) -> None:
        if not self._config.cache_seconds:
            return
        self._known[key] = (self._system.monotonic() + self._config.cache_seconds, holder)
        while len(self._known) > CACHE_ENTRIES_MAX:
            self._known.popitem(last=False)


def _open_channel(address: str, tls: bool, roots: bytes | None) -> grpc.aio.Channel:
    if not tls and roots is None:
        return grpc.aio.insecure_channel(address, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(roots)
    return grpc.aio.secure_channel(address, credentials, options=_OPTIONS)


def _holder_of(answer: wire.ValidateTokenResponse) -> TokenHolder | None:
    if not answer.active:
        return None
    return TokenHolder(
        id=answer.principal_id,
        name=answer.principal_name,
        kind=answer.kind,
        namespace=answer.namespace,
        roles={one.namespace: one.role for one in answer.namespaces},
        permissions={one.namespace: frozenset(one.permissions) for one in answer.namespaces},
        queues=tuple(answer.queues),
        expires_at=answer.expires_at.ToMicroseconds() if answer.HasField("expires_at") else None,
        attempt=_attempt_of(answer.attempt) if answer.HasField("attempt") else None,
    )


def _attempt_of(attempt: wire.Attempt) -> Attempt:
    return Attempt(
        run_id=attempt.run_id,
        position=attempt.position,
        epoch=attempt.epoch,
        workflow=attempt.workflow,
        task=attempt.task,
        attempt=attempt.attempt,
    )


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        text = f"must be between {least:g} and {most:g}, not {value:g}"
        raise InvalidInput([Problem(path=name, message=text, code="range")])
