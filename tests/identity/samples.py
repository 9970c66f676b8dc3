"""Requests made from the declarations of endpoints: a path, and a small body that is valid."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from tidemill.api.app import Application
from tidemill.api.routing import JSON, Endpoint

UNKNOWN_ID = "01980000-0000-7000-8000-0123456789ab"
_numbers = count(1)


def path_of(one: Endpoint, **known: str) -> str:
    """A path of the endpoint; what is not known names nothing."""
    path = one.path
    for name, kind in one.parameters.items():
        path = path.replace(f"{{{name}}}", known.get(name, UNKNOWN_ID if kind is str else "7"))
    waits = "timeout" in getattr(one.query, "__struct_fields__", ())
    return f"{path}?timeout=0" if waits else path


def body_of(one: Endpoint) -> bytes:
    """The smallest body that its types allow; empty when it takes none."""
    kind = one.consumes.get(JSON) if one.body is None else one.body
    if not one.consumes or kind is None:
        return b""
    if "example" in one.facts:
        return msgspec.json.encode(one.facts["example"])
    schema = msgspec.json.schema(kind)
    return msgspec.json.encode(_sample(schema, schema.get("$defs", {}), ""))


def _sample(schema: dict[str, Any], known: dict[str, Any], name: str) -> Any:
    if "$ref" in schema:
        return _sample(known[schema["$ref"].rpartition("/")[2]], known, name)
    if "anyOf" in schema:
        return _sample(schema["anyOf"][0], known, name)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            needed = schema.get("required", [])
            return {one: _sample(schema["properties"][one], known, one) for one in needed}
        case "array":
            return [_sample(schema["items"], known, name)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "string":
            return _text(name)
    return None


def _text(name: str) -> str:
    number = next(_numbers)
    known = {
        "email": f"guest-{number}@mill.test",
        "password": "a tide for the mill",
        "new": "a tide for the mill",
    }
    return known.get(name, f"sample-{number}")


async def status_of(app: Application, method: str, path: str, **sent: Any) -> int:
    """The status of an answer; a stream is left as soon as that is known."""
    headers = {"host": "127.0.0.1:8080", "content-type": JSON, **sent.get("headers", {})}
    body = sent.get("body", b"")
    headers["content-length"] = str(len(body))
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    started: list[int] = []

    async def receive() -> dict[str, Any]:
        return incoming.pop() if incoming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            started.append(message["status"])

    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
        "client": (sent.get("address", "10.0.0.9"), 9),
        "server": ("127.0.0.1", 8080),
    }
    await app(scope, receive, send)
    return started[0]
