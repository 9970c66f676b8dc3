"""How an endpoint is declared: method, path, permission, and the types of what goes in and out."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import UnionType
from typing import Any, Generic, Required, TypeAlias, TypedDict, TypeVar, Union, Unpack

import msgspec

from tidemill.api.call import Call
from tidemill.api.problems import CODES
from tidemill.domain.permissions import Permission

JSON = "application/json"
NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

T = TypeVar("T")

_PARAMETER = re.compile(r"\{([a-z_]+)\}")
_SEGMENT = re.compile(r"\{[a-z_]+\}|[A-Za-z0-9_.:-]+")


class Open(Enum):
    """Access that needs no permission."""

    PUBLIC = "public"  # anybody, without credentials
    AUTHENTICATED = "authenticated"  # anybody who is known


PUBLIC = Open.PUBLIC
AUTHENTICATED = Open.AUTHENTICATED

Access: TypeAlias = Permission | Open


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer with another status than the declared one, or with headers of its own."""

    value: T
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is sent piece by piece; it ends with the client, or with the process."""

    chunks: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None


class Content(msgspec.Struct, frozen=True):
    """Bytes that are sent as they are, with the media type that the endpoint declares."""

    data: bytes


Handler: TypeAlias = Callable[..., Awaitable[Any]]


class Facts(TypedDict, total=False):
    """What else an endpoint may say about itself."""

    summary: Required[str]
    tag: Required[str]
    status: int
    errors: Sequence[str]  # codes of documented refusals, such as NOT_FOUND
    media_type: str  # of the answer
    alternatives: Mapping[str, Any]  # further media types of the answer with the type of each
    consumes: Mapping[str, Any]  # media types of the request with the type of each; see Call.decode
    headers: Mapping[str, Any]  # further request headers: a type, or just what it means
    statuses: Mapping[int, str]  # further good statuses, each with what it means
    example: Any  # a body that works
    returns: Any  # the documented type of an answer that is made as bytes or streamed
    audit: str  # what goes into the audit log when it was done, such as `run.cancel`
    namespaced: bool  # whether the request is about a namespace; True unless said
    page: bool  # an answer for browsers: may load scripts and styles of this server


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One declared route. What is not one of these is not served."""

    name: str
    method: str
    path: str
    permission: Access
    handler: Handler
    description: str
    parameters: Mapping[str, Any]  # types by name, in the order of the path
    body: Any
    query: Any
    returns: Any
    facts: Facts

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path; those in braces take any text."""
        return tuple(self.path.split("/")[1:])

    @property
    def status(self) -> int:
        """The status of an answer that says none."""
        return self.facts.get("status", 204 if self.returns is type(None) else 200)

    @property
    def media_type(self) -> str:
        """What it answers with."""
        return self.facts.get("media_type", JSON)

    @property
    def consumes(self) -> Mapping[str, Any]:
        """The media types that it takes, each with its type; empty when it takes no body."""
        declared = self.facts.get("consumes")
        if declared is not None:
            return declared
        return {} if self.body is None else {JSON: self.body}

    @property
    def streams(self) -> bool:
        """Whether the answer is sent piece by piece."""
        return self.returns is Stream

    @property
    def namespaced(self) -> bool:
        """Whether the request is about one namespace."""
        return self.facts.get("namespaced", isinstance(self.permission, Permission))


def endpoint(
    method: str, path: str, *, permission: Access, **facts: Unpack[Facts]
) -> Callable[[Handler], Endpoint]:
    """Declare a handler; a mistake in the declaration is told when the module is imported."""
    _check(method, path, permission, facts)

    def declare(handler: Handler) -> Endpoint:
        hints = typing.get_type_hints(handler, include_extras=True)
        returns = _answered(hints.pop("return", None))
        body, query = hints.pop("body", None), hints.pop("query", None)
        if hints.pop("call", None) is not Call:
            raise TypeError(f"{handler.__name__}: the first parameter is `call: Call`")
        named = _PARAMETER.findall(path)
        if sorted(named) != sorted(hints):
            raise TypeError(f"{handler.__name__}: {path} and its parameters differ: {list(hints)}")
        for kind in (body, query):
            _check_closed(handler, kind)
        return Endpoint(
            name=handler.__name__,
            method=method,
            path=path,
            permission=permission,
            handler=handler,
            description=inspect.getdoc(handler) or "",
            parameters={name: hints[name] for name in named},
            body=body,
            query=query,
            returns=facts.get("returns", returns) if returns is not Stream else Stream,
            facts=facts,
        )

    return declare


def _check(method: str, path: str, permission: object, facts: Facts) -> None:
    if method not in METHODS:
        raise TypeError(f"{path}: {method} is no method that is served")
    if not all(_SEGMENT.fullmatch(part) for part in path.split("/")[1:]):
        raise TypeError(f"{path}: a part is a plain word or {{name}}")
    if not isinstance(permission, Permission | Open):
        raise TypeError(f"{path}: permission is a Permission, PUBLIC or AUTHENTICATED")
    unknown = [code for code in facts.get("errors", ()) if code not in CODES]
    if unknown:
        raise TypeError(f"{path}: errors are codes of api.problems.CODES, not {unknown}")


def _check_closed(handler: Handler, kind: Any) -> None:
    """What is sent and not understood would be lost without a word."""
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return
    if not kind.__struct_config__.forbid_unknown_fields:
        raise TypeError(f"{handler.__name__}: {kind.__name__} needs forbid_unknown_fields=True")


def _answered(hint: Any) -> Any:
    """The type of the value that is sent, whether in an Answer or not."""
    if typing.get_origin(hint) in {Union, UnionType}:
        kinds = dict.fromkeys(_answered(part) for part in typing.get_args(hint))
        return Union[tuple(kinds)]  # noqa: UP007 - made at run time
    if typing.get_origin(hint) is Answer:
        return typing.get_args(hint)[0]
    return hint


__all__ = [
    "AUTHENTICATED",
    "EVENT_STREAM",
    "JSON",
    "NDJSON",
    "PUBLIC",
    "Access",
    "Answer",
    "Call",
    "Content",
    "Endpoint",
    "Open",
    "Stream",
    "endpoint",
]
