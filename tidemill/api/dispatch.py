"""From a matched request to its answer: admit, decode, call the handler, encode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from tidemill.api.auditing import record
from tidemill.api.call import Call, matches, media_type_of
from tidemill.api.decoding import convert, decode_query, refuse_query
from tidemill.api.headers import Headers, standing_headers
from tidemill.api.problems import HttpError
from tidemill.api.routing import JSON, NDJSON, PUBLIC, Answer, Content, Endpoint, Stream
from tidemill.api.security import Security
from tidemill.domain.permissions import Permission
from tidemill.domain.problems import listed

encoder = msgspec.json.Encoder()

_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent: a body, or a stream of pieces."""

    status: int
    headers: Headers
    body: bytes | Stream


class Dispatcher:
    """Serves one endpoint; everything that does not depend on the request is made before."""

    def __init__(self, one: Endpoint, security: Security) -> None:
        self.endpoint = one
        self._security = security
        self._public = one.permission is PUBLIC
        self._permission = one.permission if isinstance(one.permission, Permission) else None
        self._converted = {name: kind for name, kind in one.parameters.items() if kind is not str}
        self._names = tuple(one.parameters)
        self._audit = one.facts.get("audit")
        self._consumes = frozenset(one.consumes)
        self._lasts = not self._public and (one.streams or bool(self._consumes))
        self._bare = standing_headers(security, page=one.facts.get("page", False))
        self._headers: Headers = [*self._bare, (b"content-type", one.media_type.encode())]

    async def serve(self, call: Call, values: tuple[str, ...]) -> Reply:
        """The answer; whatever is refused is raised."""
        await self._admit(call)
        if self._lasts:
            call.readmit = partial(self._security.readmit, call, self._permission)
        with self._security.place(call, self._security.askers):
            return await self._answer(call, values)

    async def _answer(self, call: Call, values: tuple[str, ...]) -> Reply:
        one = self.endpoint
        self._check_media_type(call)
        given: dict[str, Any] = dict(zip(self._names, values, strict=True))
        for name, kind in self._converted.items():
            given[name] = _convert_parameter(given[name], kind, name)
        query = call.scope["query_string"]
        if one.query is not None:
            given["query"] = decode_query(query, one.query)
        elif query:
            refuse_query(query)
        if one.body is not None:
            given["body"] = await call.decode(one.body)
        value = await one.handler(call, **given)
        if self._audit is not None:
            await record(call, self._audit, values, value)
        return self._reply(call, value)

    async def _admit(self, call: Call) -> None:
        await self._security.admit(call, self._permission, public=self._public)

    def _check_media_type(self, call: Call) -> None:
        """A body of another kind is refused unread: a form of a web page cannot send JSON."""
        if call.scope["method"] in _SAFE:
            return
        found = media_type_of(call.headers)
        if self._consumes:
            if found not in self._consumes:
                raise _wrong_media_type(found, sorted(self._consumes))
        elif has_body(call.headers) and found not in {JSON, NDJSON}:
            raise _wrong_media_type(found, [JSON])

    def _reply(self, call: Call, value: Any) -> Reply:
        status, more = self.endpoint.status, None
        if isinstance(value, Answer):
            status, more, value = value.status or status, value.headers, value.value
        if isinstance(value, Stream):
            return Reply(value.status or status, _with(self._headers, value.headers), value)
        if value is None and status == 204:
            return Reply(status, _with(self._bare, more), b"")
        headers = _with(self._headers, more) if more else self._headers
        if more and _is_known(call, more):
            return Reply(304, _with(self._bare, more), b"")
        body = value.data if isinstance(value, Content) else encoder.encode(value)
        return Reply(status, headers, body)


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request announces anything behind its headers."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _convert_parameter(text: str, kind: Any, name: str) -> Any:
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else text
        return convert(number, kind, name)


def _wrong_media_type(found: str, allowed: list[str]) -> HttpError:
    what = f"not {found}" if found else "and none is named"
    text = f"Content-Type must be {listed(allowed)}, {what}"
    return HttpError(
        415, text, code="UNSUPPORTED_MEDIA_TYPE", headers={"Accept": ", ".join(allowed)}
    )


def _with(headers: Headers, more: Mapping[str, str] | None) -> Headers:
    if not more:
        return headers
    added = [
        (name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in more.items()
    ]
    names = {name for name, _ in added}
    return [*(pair for pair in headers if pair[0] not in names), *added]


def _is_known(call: Call, headers: Mapping[str, str]) -> bool:
    """Whether the client has this very answer already."""
    etag, wanted = headers.get("ETag"), call.header("if-none-match")
    if etag is None or wanted is None or call.scope["method"] not in _SAFE:
        return False
    return matches(wanted, etag)
