"""The HTTP application: every request is matched to a declared endpoint, or refused."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any, cast

from starlette.types import Message, Receive, Scope, Send

from tidemill.api import resources
from tidemill.api.call import Call, Disconnected
from tidemill.api.dispatch import Dispatcher, Reply, encoder, has_body
from tidemill.api.headers import (
    Headers,
    allowed_origin,
    origin_headers,
    preflight_headers,
    standing_headers,
)
from tidemill.api.matching import Match, Table
from tidemill.api.problems import HttpError, details_of, headers_of, internal_details
from tidemill.api.routing import Endpoint, Stream
from tidemill.api.security import NAMESPACE_HEADER, Security
from tidemill.api.services import Services
from tidemill.domain.errors import InvalidInput, NotFound, Problem, TidemillError, Unavailable
from tidemill.protocol.resources.problems import PROBLEM_MEDIA_TYPE, ProblemView

REQUESTS_MAX = 5_000
"""Requests at once, without streams; more are told to come again."""
STREAMS_MAX = 1_000

_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_ONCE = (
    *(b"host", b"authorization", b"content-type", b"content-length", b"origin"),
    *(b"transfer-encoding", b"idempotency-key", b"if-match", b"last-event-id"),
    NAMESPACE_HEADER.lower().encode(),
)

log = logging.getLogger(__name__)


class Application:
    """An ASGI application over a table of endpoints, and nothing besides."""

    def __init__(
        self, services: Services, security: Security, endpoints: Iterable[Endpoint]
    ) -> None:
        self.services = services
        self.security = security
        self.table = Table(endpoints)
        self._dispatchers = {id(one): Dispatcher(one, security) for one in self.table.endpoints}
        self._refusal_headers: Headers = [
            *standing_headers(security, page=False),
            (b"content-type", PROBLEM_MEDIA_TYPE.encode()),
        ]
        self._id_prefix = services.entropy.session_id()[:12]
        self._count = 0
        self._requests = 0
        self._streams = 0

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Everything that is served."""
        return self.table.endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            try:
                await self._answer(scope, receive, send)
            except asyncio.CancelledError:
                if not self.services.closing.is_set():
                    raise  # else the time is up, and nobody is there to be told
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        call = Call(self.services, scope, receive, headers)
        call.request_id = self._request_id(headers)
        self._requests += 1
        try:
            reply = await self._reply(call)
        except Disconnected:
            return
        finally:
            self._requests -= 1
        if log.isEnabledFor(logging.DEBUG):
            path = scope.get("raw_path", b"").decode("latin-1")  # as it was sent: no line breaks
            log.debug("%s %s %s %d", call.request_id, scope["method"], path, reply.status)
        more = [(b"x-request-id", call.request_id.encode())]
        if self.security.cors_origins and (origin := allowed_origin(self.security, headers)):
            more += origin_headers(origin)
        if isinstance(reply.body, Stream):
            await self._stream(call, reply, more, send)
        else:
            body = b"" if scope["method"] == "HEAD" else reply.body
            if reply.status not in {204, 304}:
                more.append((b"content-length", b"%d" % len(reply.body)))
            await _begin(send, reply.status, [*reply.headers, *more])
            await send({"type": "http.response.body", "body": body})

    async def _reply(self, call: Call) -> Reply:
        try:
            return await self._dispatch(call)
        except TidemillError as error:
            return self._refusal(call, error)
        except (Disconnected, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("request %s failed", call.request_id)
            details = internal_details(instance=call.scope["path"], request_id=call.request_id)
            return self._problem(details, {})

    async def _dispatch(self, call: Call) -> Reply:
        scope, security = call.scope, self.security
        if len(call.headers) != len(scope["headers"]):
            _refuse_doubles(scope["headers"])
        if b"transfer-encoding" in call.headers or b"upgrade" in call.headers:
            _refuse_codings(call.headers)
        if security.guard is not None:
            security.guard.check(call.headers, scope["scheme"])
        if self._requests > REQUESTS_MAX:
            raise Unavailable("too many requests at once: try again")
        raw_path = scope.get("raw_path") or scope["path"].encode()
        match = self.table.match(raw_path)
        if match is None:
            raise NotFound("there is nothing at this path; /docs lists what there is")
        method = scope["method"]
        one = match.endpoints.get(method)
        if one is None and method == "HEAD":
            one = match.endpoints.get("GET")
            one = None if one is None or one.streams else one
        if one is None:
            return self._other_method(call, match)
        return await self._dispatchers[id(one)].serve(call, match.values)

    def _other_method(self, call: Call, match: Match) -> Reply:
        methods = ", ".join(_methods(match))
        if _is_preflight(call) and allowed_origin(self.security, call.headers) is not None:
            standing = standing_headers(self.security, page=False)
            return Reply(204, [*standing, *preflight_headers(methods)], b"")
        text = f"{call.scope['method']} is not possible here, {methods} is"
        raise HttpError(405, text, code="METHOD_NOT_ALLOWED", headers={"Allow": methods})

    def _refusal(self, call: Call, error: TidemillError) -> Reply:
        details = details_of(error, instance=call.scope["path"], request_id=call.request_id)
        if details.status >= 500:
            log.warning("request %s: %s", call.request_id, error)
        elif details.status in {401, 403}:
            log.info("request %s of %s refused: %s", call.request_id, call.asker, error)
        if details.status == 500:  # a class that no client was meant to see
            details = internal_details(instance=details.instance, request_id=call.request_id)
        return self._problem(details, headers_of(error))

    def _problem(self, details: ProblemView, more: Mapping[str, str]) -> Reply:
        added = [(name.lower().encode(), text.encode("latin-1")) for name, text in more.items()]
        return Reply(details.status, [*self._refusal_headers, *added], encoder.encode(details))

    async def _stream(self, call: Call, reply: Reply, more: Headers, send: Send) -> None:
        """Send pieces until they end, the client goes, or the process is about to stop."""
        self._streams += 1
        pump = asyncio.create_task(self._pump(call, reply, more, send))
        watching = [pump]
        if call.scope["method"] == "GET":  # else the request itself is still coming in
            watching += [asyncio.create_task(_gone(call)), asyncio.create_task(self._closed())]
        try:
            await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._streams -= 1
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
        if pump.cancelled():
            await send({"type": "http.response.body", "body": b""})
        elif (error := pump.exception()) is not None and not isinstance(error, Disconnected):
            # Too late for another status: cutting the connection tells that it is not complete.
            log.error("stream %s failed", call.request_id, exc_info=error)
            raise error

    async def _pump(self, call: Call, reply: Reply, more: Headers, send: Send) -> None:
        stream = cast(Stream, reply.body)
        async with aclosing(cast(Any, stream.chunks)) as chunks, AsyncExitStack() as inside:
            try:
                inside.enter_context(self.security.place(call, self.security.streamers))
                first = await self._first(chunks)
            except TidemillError as error:
                refusal = self._refusal(call, error)
                await _begin(send, refusal.status, [*refusal.headers, *more])
                await send({"type": "http.response.body", "body": refusal.body})
                return
            await _begin(send, reply.status, [*reply.headers, *more])
            await _continue(send, first)
            async for chunk in chunks:
                await _continue(send, chunk)
        await send({"type": "http.response.body", "body": b""})

    async def _first(self, chunks: AsyncIterator[bytes]) -> bytes:
        """The first piece; what is wrong until then can still be told by a status."""
        if self._streams > STREAMS_MAX:
            raise Unavailable("too many streams are open: try again")
        return await anext(chunks, b"")

    async def _closed(self) -> None:
        await self.services.closing.wait()

    def _request_id(self, headers: Mapping[bytes, bytes]) -> str:
        given = headers.get(b"x-request-id")
        if given is not None and _SANE_ID.fullmatch(given):
            return given.decode("ascii")
        self._count += 1
        return f"{self._id_prefix}-{self._count:x}"


def build_app(
    services: Services, security: Security, endpoints: Iterable[Endpoint] | None = None
) -> Application:
    """The application with all that is served, or with the endpoints given."""
    return Application(
        services, security, resources.all_endpoints() if endpoints is None else endpoints
    )


def _is_preflight(call: Call) -> bool:
    return call.scope["method"] == "OPTIONS" and b"access-control-request-method" in call.headers


def _methods(match: Match) -> list[str]:
    methods = set(match.endpoints)
    if "GET" in methods and not match.endpoints["GET"].streams:
        methods.add("HEAD")
    return sorted(methods)


def _refuse_doubles(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Two values for one of these mean that somebody on the way reads the other one."""
    names = [name for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            text = "is sent twice: send it once"
            raise InvalidInput([Problem(path=name.decode(), message=text, code="DUPLICATE")])


def _refuse_codings(headers: Mapping[bytes, bytes]) -> None:
    """What is not read as it was meant is not read at all."""
    coding = headers.get(b"transfer-encoding", b"chunked").strip().lower()
    if coding != b"chunked":
        text = "Transfer-Encoding must be chunked alone: send the body as it is"
        raise HttpError(400, text, code="BAD_ENCODING", headers={"Connection": "close"})
    if b"upgrade" in headers and has_body(headers):
        text = "this is HTTP/1.1 only, and the body is lost in an upgrade: send it without Upgrade"
        raise HttpError(400, text, code="NO_UPGRADE", headers={"Connection": "close"})


async def _begin(send: Send, status: int, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _continue(send: Send, chunk: bytes) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _gone(call: Call) -> None:
    """Return when the client has left; what it still sends is of no interest."""
    while (await call.receive())["type"] != "http.disconnect":
        pass


async def _live(receive: Receive, send: Send) -> None:
    """Say yes to servers and test clients that announce begin and end."""
    while True:
        message: Message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
