"""Requests to one server: retried where that is safe, with credentials, errors mapped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
import msgspec

from tidemill.client.credentials import Credentials, FixedToken
from tidemill.client.errors import error_of, retry_after, unreachable, unreadable
from tidemill.client.system import System
from tidemill.domain.errors import RateLimited, TidemillError, Unauthenticated, Unavailable

T = TypeVar("T")

RETRIES_MAX = 4
PAUSE_FIRST_SECONDS = 0.2
PAUSE_SECONDS_MAX = 5.0
STREAM_SILENCE_SECONDS = 60.0
"""A stream of events is pinged more often than that; after it, the connection is taken for dead."""

UNIX = "unix:"
NAMESPACE_HEADER = "Tidemill-Namespace"
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; `repeatable` says that sending it twice does no more than sending it once."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    patience: float = 0.0  # seconds that the server may take beyond the usual timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """A request that failed; `unsent` when the server has done nothing about it for sure."""

    error: TidemillError
    cause: Exception | None = None
    pause: float | None = None
    unsent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server is and how it is spoken to; `transport` reaches one inside this process."""

    server: str
    namespace: str | None = None
    timeout: float = 30.0
    retries: int = RETRIES_MAX
    transport: httpx.AsyncBaseTransport | None = None
    origin: str = ""  # for people, when it does not answer: who named it
    instead: str = ""  # and what else may be meant


class Connection:
    """Speaks to one server; an async context manager."""

    def __init__(
        self,
        place: Place,
        credentials: Credentials | None = None,
        system: System | None = None,
    ) -> None:
        self.place = place
        self.system = system or System()
        self._credentials = credentials or FixedToken(None)
        self._http = _http_client(place)

    async def close(self) -> None:
        """Let go of every connection; safe to call twice."""
        await self._http.aclose()

    async def call(self, request: Request) -> httpx.Response:
        """The answer to a request, read whole; what is no success is raised."""
        attempt = 0
        while True:
            outcome = await self._try(request)
            if isinstance(outcome, httpx.Response):
                return outcome
            if attempt >= self.place.retries or not _may_repeat(request, outcome):
                raise outcome.error from outcome.cause
            await self.pause(attempt, outcome.pause)
            attempt += 1

    async def fetch(self, request: Request, kind: type[T]) -> T:
        """The answer to a request as a value."""
        return self.decode((await self.call(request)).content, kind)

    def decode(self, data: bytes, kind: type[T]) -> T:
        """Read what a server sent."""
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.DecodeError as error:
            raise unreadable(self.place.server, error) from error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """The pieces of a long answer as they come; a connection that breaks is Unavailable."""
        timeout = httpx.Timeout(self.place.timeout, read=STREAM_SILENCE_SECONDS)
        sent = self._build(request, await self._credentials.token(), timeout)
        response = await self._open(sent)
        try:
            if response.status_code == httpx.codes.UNAUTHORIZED:
                await response.aclose()
                token = await self._credentials.renewed(_token_of(sent))
                response = await self._open(self._build(request, token, timeout))
            if not response.is_success:
                raise error_of(response.status_code, response.headers, await response.aread())
            yield self._pieces(response)
        finally:
            await response.aclose()

    async def pause(self, attempt: int, asked: float | None = None) -> None:
        """Wait before the next attempt: longer each time, never all clients at once."""
        longest = min(PAUSE_FIRST_SECONDS * 2**attempt, PAUSE_SECONDS_MAX)
        spread = longest * (0.5 + self.system.fraction() / 2)
        await self.system.sleep(spread if asked is None else asked + spread / 4)

    async def _try(self, request: Request) -> httpx.Response | _Trouble:
        token = await self._credentials.token()
        outcome = await self._send(request, token)
        if isinstance(outcome, _Trouble) and isinstance(outcome.error, Unauthenticated):
            fresh = await self._credentials.renewed(token)
            if fresh is not None:
                return await self._send(request, fresh)
        return outcome

    async def _send(self, request: Request, token: str | None) -> httpx.Response | _Trouble:
        seconds = self.place.timeout + request.patience
        built = self._build(request, token, httpx.Timeout(seconds))
        try:
            response = await self._http.send(built)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            return _Trouble(error=self._lost(error), cause=error, unsent=True)
        except (httpx.TransportError, OSError) as error:
            return _Trouble(error=self._lost(error), cause=error)
        if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
            return response
        failure = error_of(response.status_code, response.headers, response.content)
        limited = isinstance(failure, RateLimited)
        return _Trouble(error=failure, pause=retry_after(response.headers), unsent=limited)

    async def _open(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._http.send(request, stream=True)
        except (httpx.TransportError, OSError) as error:
            raise self._lost(error) from error

    async def _pieces(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except (httpx.TransportError, OSError) as error:
            raise self._lost(error) from error

    def _build(self, request: Request, token: str | None, timeout: httpx.Timeout) -> httpx.Request:
        headers = {"Accept": JSON, **request.headers}
        if request.body is not None:
            headers.setdefault("Content-Type", JSON)
        if self.place.namespace is not None:
            headers[NAMESPACE_HEADER] = self.place.namespace
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self._http.build_request(
            request.method,
            request.path,
            params=_given(request.query),
            content=request.body,
            headers=headers,
            timeout=timeout,
        )

    def _lost(self, error: Exception) -> Unavailable:
        place = self.place
        return unreachable(place.server, error, origin=place.origin, instead=place.instead)


def _http_client(place: Place) -> httpx.AsyncClient:
    transport = place.transport
    url = place.server
    if url.startswith(UNIX):
        transport = httpx.AsyncHTTPTransport(uds=url.removeprefix(UNIX))
        url = "http://localhost"
    # Variables such as HTTP_PROXY must not send what is meant for this machine elsewhere.
    return httpx.AsyncClient(base_url=url, transport=transport, trust_env=not _is_local(url))


def _is_local(url: str) -> bool:
    return httpx.URL(url).host in {"localhost", "127.0.0.1", "::1"}


def _may_repeat(request: Request, trouble: _Trouble) -> bool:
    passing = isinstance(trouble.error, Unavailable | RateLimited)
    return passing and (trouble.unsent or request.repeatable)


def _token_of(request: httpx.Request) -> str | None:
    return request.headers.get("Authorization", "").removeprefix("Bearer ") or None


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for: None and empty lists ask for nothing; truth is spelled as in JSON."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None and value not in ((), [])
    }
