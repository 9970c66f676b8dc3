"""The OpenAPI 3.1 document, made from the declarations of the endpoints and their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Annotated, Any, TypeAlias

import msgspec

from tidemill.api.problems import CODES
from tidemill.api.routing import JSON, PUBLIC, Content, Endpoint, Stream
from tidemill.api.security import NAMESPACE_HEADER
from tidemill.domain.permissions import Permission
from tidemill.domain.workflow import Name
from tidemill.protocol.resources.problems import PROBLEM_MEDIA_TYPE, ProblemView

Schema: TypeAlias = dict[str, Any]

HEADER_CHARACTERS_MAX = 256

_REFERENCE = "#/components/schemas/{name}"
_HEADER_TEXT = Annotated[str, msgspec.Meta(min_length=1, max_length=HEADER_CHARACTERS_MAX)]
_ALWAYS = ("INVALID", "FORBIDDEN", "RATE_LIMITED", "INTERNAL", "UNAVAILABLE")
_ABOUT = """Durable workflows over HTTP.

Errors are problem details (RFC 9457) with a stable `code` and every error at once. Lists come in
pages: `next` of one is `after` of the following. Times are RFC 3339 in UTC."""


def openapi_document(endpoints: Sequence[Endpoint]) -> Schema:
    """The whole document, as JSON values."""
    types = _Types(endpoints)
    paths: dict[str, Schema] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, types)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidemill",
            "version": version("tidemill"),
            "description": _paragraphs(_ABOUT),
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(one.facts["tag"] for one in endpoints)],
        "paths": paths,
        "components": {
            "schemas": types.components,
            "responses": {code: _problem(code, types) for code in CODES},
            "headers": {
                "RequestId": {
                    "description": "The id of this request: the one sent, or a new one.",
                    "schema": {"type": "string"},
                }
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An access token or an API key. Not needed in single-user mode.",
                }
            },
        },
    }


class _Types:
    """The schemas of all types that endpoints name, each component once."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._kinds: list[Any] = [ProblemView, Name, _HEADER_TEXT]
        for one in endpoints:
            self._kinds += _types_of(one)
        schemas, components = msgspec.json.schema_components(self._kinds, ref_template=_REFERENCE)
        self._schemas = schemas
        queries = {_reference(self.of(one.query)) for one in endpoints if one.query is not None}
        self._all = components
        self.components = {
            name: _tidy(schema) for name, schema in components.items() if name not in queries
        }

    def of(self, kind: Any) -> Schema:
        """The schema of one type."""
        return self._schemas[self._kinds.index(kind)]

    def fields(self, kind: Any) -> Iterator[tuple[str, Schema, bool]]:
        """Name, schema and whether it is required, for each field of a Struct."""
        schema = _tidy(self._all[_reference(self.of(kind))])
        for name, field in schema["properties"].items():
            yield name, field, name in schema.get("required", ())


def _types_of(one: Endpoint) -> Iterator[Any]:
    yield from one.parameters.values()
    yield from one.consumes.values()
    yield from one.facts.get("alternatives", {}).values()
    yield from (kind for kind in one.facts.get("headers", {}).values() if not isinstance(kind, str))
    if one.query is not None:
        yield one.query
    if (returned := _returned(one)) is not None:
        yield returned


def _returned(one: Endpoint) -> Any:
    """The type of the body of an answer; None when nothing is said about it."""
    declared = one.facts.get("returns", one.returns)
    return None if declared in {Stream, Content, type(None), None} else declared


def _reference(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _tidy(schema: Any) -> Any:
    """Descriptions in one line."""
    if isinstance(schema, list):
        return [_tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: " ".join(part.split())
        if name == "description" and isinstance(part, str)
        else _tidy(part)
        for name, part in schema.items()
    }


def _operation(one: Endpoint, types: _Types) -> Schema:
    access = f"\n\nNeeds `{one.permission}`." if isinstance(one.permission, Permission) else ""
    operation: Schema = {
        "operationId": one.name,
        "tags": [one.facts["tag"]],
        "summary": one.facts["summary"],
        "description": _paragraphs(f"{one.description}{access}") or one.facts["summary"],
        "security": [] if one.permission is PUBLIC else [{"bearer": []}],
        "parameters": list(_parameters(one, types)),
        "responses": _responses(one, types),
    }
    if isinstance(one.permission, Permission):
        operation["x-permission"] = str(one.permission)
    if one.consumes:
        operation["requestBody"] = {
            "required": True,
            "content": {name: _content(one, name, types) for name in one.consumes},
        }
    return operation


def _paragraphs(text: str) -> str:
    """Each paragraph in one line: pages break lines themselves."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n")).strip()


def _content(one: Endpoint, media_type: str, types: _Types) -> Schema:
    content: Schema = {"schema": types.of(one.consumes[media_type])}
    if media_type == JSON and "example" in one.facts:
        content["example"] = one.facts["example"]
    return content


def _parameters(one: Endpoint, types: _Types) -> Iterator[Schema]:
    for name, kind in one.parameters.items():
        yield {"name": name, "in": "path", "required": True, "schema": types.of(kind)}
    if one.query is not None:
        for name, schema, required in types.fields(one.query):
            yield _parameter(name, "query", _without_null(schema), required=required)
    if one.namespaced:
        text = "The namespace that the request is about; the caller's own if not given."
        yield _parameter(NAMESPACE_HEADER, "header", types.of(Name), text=text)
    for name, told in one.facts.get("headers", {}).items():
        if isinstance(told, str):
            yield _parameter(name, "header", types.of(_HEADER_TEXT), text=told)
        else:
            yield _parameter(name, "header", types.of(told))


def _parameter(
    name: str, place: str, schema: Schema, *, required: bool = False, text: str = ""
) -> Schema:
    told = text or schema.get("description", "")
    parameter: Schema = {"name": name, "in": place, "required": required, "schema": schema}
    return {**parameter, "description": told} if told else parameter


def _without_null(schema: Schema) -> Schema:
    """A parameter that is not given is left out: there is no way to write null in a query."""
    found = dict(schema)
    if found.get("default", ...) is None:
        del found["default"]
    options = [part for part in found.get("anyOf", ()) if part != {"type": "null"}]
    if "anyOf" in found and len(options) == 1:
        del found["anyOf"]
        return {**options[0], **found}
    return {**found, "anyOf": options} if options else found


def _responses(one: Endpoint, types: _Types) -> Schema:
    good = {one.status: HTTPStatus(one.status).phrase, **one.facts.get("statuses", {})}
    responses = {str(status): _good(one, status, text, types) for status, text in good.items()}
    for code in _codes(one):
        responses.setdefault(str(CODES[code]), {"$ref": f"#/components/responses/{code}"})
    return dict(sorted(responses.items()))


def _codes(one: Endpoint) -> Iterator[str]:
    yield from _ALWAYS
    yield from one.facts.get("errors", ())
    if one.permission is not PUBLIC:
        yield "UNAUTHENTICATED"
    if one.namespaced:
        yield "NOT_FOUND"
    if one.consumes:
        yield from ("TIMEOUT", "TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE")


def _good(one: Endpoint, status: int, text: str, types: _Types) -> Schema:
    response: Schema = {"description": text, "headers": _sent_headers(one)}
    if status in {204, 304}:
        return response
    kind = _returned(one)
    response["content"] = {one.media_type: {} if kind is None else {"schema": types.of(kind)}}
    for media_type, other in one.facts.get("alternatives", {}).items():
        response["content"][media_type] = {"schema": types.of(other)}
    return response


def _sent_headers(one: Endpoint) -> Mapping[str, Any]:
    return {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}


def _problem(code: str, types: _Types) -> Schema:
    response: Schema = {
        "description": f"{HTTPStatus(CODES[code]).phrase}: `{code}`, or a more exact code.",
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
        "content": {PROBLEM_MEDIA_TYPE: {"schema": types.of(ProblemView)}},
    }
    if code in {"RATE_LIMITED", "UNAVAILABLE"}:
        response["headers"]["Retry-After"] = {
            "description": "Seconds to wait before the next try.",
            "schema": {"type": "integer", "minimum": 1},
        }
    return response
