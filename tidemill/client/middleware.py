"""ASGI middleware for services beside Tidemill: who calls them is whom Tidemill knows."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol, TypeAlias

import msgspec

from tidemill.client.validation import TokenHolder
from tidemill.domain.errors import Forbidden, TidemillError, Unauthenticated, Unavailable

PRINCIPAL = "tidemill.principal"
"""Where in the scope of a request the TokenHolder is."""

RETRY_SECONDS = 1
REFUSED_SOCKET = 1008  # policy violation
PROBLEM_TYPE = b"application/problem+json"

log = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Validating(Protocol):
    """Tells who holds a token: TokenValidator."""

    async def validate(self, token: str) -> TokenHolder | None:
        """Whoever holds it; None when nobody does."""


class TidemillAuthMiddleware:
    """Lets through who has a valid credential of Tidemill, and a permission if one is asked for.

    The permission is asked for in `namespace`, that of this service: whoever has it in another one
    stays outside. Without a permission, any credential of any namespace is let through.
    `public_paths` are compared whole; everything else, WebSockets included, is closed to strangers.
    """

    def __init__(
        self,
        app: App,
        validator: Validating,
        permission: str | None = None,
        public_paths: Iterable[str] = (),
        namespace: str = "default",
    ) -> None:
        assert not isinstance(public_paths, str), "public_paths is a set of paths"
        self._app = app
        self._validator = validator
        self._permission = permission
        self._public = frozenset(public_paths)
        self._namespace = namespace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        kind = scope["type"]
        if kind == "lifespan" or (kind == "http" and scope["path"] in self._public):
            await self._app(scope, receive, send)
            return
        try:
            scope[PRINCIPAL] = await self._recognise(scope)
        except TidemillError as error:
            await self._refuse(kind, receive, send, error)
            return
        await self._app(scope, receive, send)

    async def _recognise(self, scope: Scope) -> TokenHolder:
        holder = await self._ask(_bearer_of(scope))
        if holder is None:
            raise Unauthenticated("the credential is unknown, expired or revoked")
        if self._permission is not None and not holder.may(self._permission, self._namespace):
            raise Forbidden(f"this needs {self._permission}")
        return holder

    async def _ask(self, token: str) -> TokenHolder | None:
        try:
            return await self._validator.validate(token)
        except (Unauthenticated, Forbidden) as error:
            # Not the caller's fault, who must not be told that theirs is wrong.
            log.warning("nobody is let in: %s", error)
            raise Unavailable("this service cannot ask who calls") from error

    async def _refuse(self, kind: str, receive: Receive, send: Send, error: TidemillError) -> None:
        if kind == "websocket":
            await receive()  # the handshake, which is not accepted: the server answers 403
            await send({"type": "websocket.close", "code": REFUSED_SOCKET, "reason": ""})
        elif kind == "http":
            await _send_problem(send, error)
        else:
            raise error


def _bearer_of(scope: Scope) -> str:
    given = [text for name, text in scope["headers"] if name.lower() == b"authorization"]
    scheme, _, token = given[0].decode("latin-1").partition(" ") if given else ("", "", "")
    if len(given) != 1 or scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("send `Authorization: Bearer <token>`, once")
    return token.strip()


async def _send_problem(send: Send, error: TidemillError) -> None:
    status, title = _status_of(error)
    body = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": str(error),
        "code": error.code,
    }
    headers = [(b"content-type", PROBLEM_TYPE), (b"cache-control", b"no-store")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        headers.append((b"retry-after", str(RETRY_SECONDS).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(body)})


def _status_of(error: TidemillError) -> tuple[int, str]:
    match error:
        case Unauthenticated():
            return 401, "Unauthorized"
        case Forbidden():
            return 403, "Forbidden"
        case _:
            return 503, "Service Unavailable"
