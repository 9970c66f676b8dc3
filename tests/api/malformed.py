"""Requests that are wrong, as their senders wrote them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

JSON = {"Content-Type": "application/json"}


class Wrong(NamedTuple):
    """A request, under a name that says what is wrong with it."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] | None = None


def post(name: str, path: str, body: Any, **headers: str) -> Wrong:
    """A POST with a JSON body."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Wrong(name, "POST", path, data, {**JSON, **headers})


def get(name: str, path: str, **headers: str) -> Wrong:
    """A GET."""
    return Wrong(name, "GET", path, headers=headers)


def flow(*tasks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A definition."""
    return {"name": "w", "tasks": list(tasks), **fields}


A = {"id": "a", "executor": "noop"}
RUN = "01980000-0000-7000-8000-000000000001"

REQUESTS = (
    post("no body", "/v1/jobs", b""),
    post("half of a body", "/v1/jobs", b'{"type": "noop"'),
    post("text that is no JSON", "/v1/jobs", b"type=noop"),
    post("bytes that are no text", "/v1/jobs", b'{"type": "\xff"}'),
    post("a list for an object", "/v1/jobs", []),
    post("a form", "/v1/jobs", b"type=noop", **{"Content-Type": "text/plain"}),
    post("a name twice", "/v1/jobs", b'{"type": "noop", "type": "sleep"}'),
    post(
        "a body too deep", "/v1/jobs", b'{"type":"noop","payload":' + b"[" * 100 + b"]" * 100 + b"}"
    ),
    post("a number too large", "/v1/jobs", b'{"type":"noop","payload":1e999}'),
    post("a field left out", "/v1/jobs", {"payload": 1}),
    post("a field misspelt", "/v1/jobs", {"type": "noop", "max_retry": 1}),
    post("two mistakes at once", "/v1/jobs", {"type": 5, "max_retries": -1}),
    post("a type that nobody knows", "/v1/jobs", {"type": "unheard"}),
    post("a fraction of a retry", "/v1/jobs", {"type": "noop", "max_retries": 2.5}),
    post("a key too long", "/v1/jobs", {"type": "noop", "key": "k" * 300}),
    post("two keys", "/v1/jobs", {"type": "noop", "key": "a"}, **{"Idempotency-Key": "b"}),
    post("a state set by the client", "/v1/jobs", {"type": "noop", "state": "SUCCEEDED"}),
    post("another namespace inside", "/v1/runs", {"workflow": "w", "namespace": "other"}),
    post("nothing to start", "/v1/runs", {}),
    post("two things to start", "/v1/runs", {"workflow": "w", "definition": flow(A)}),
    post("a version of nothing", "/v1/runs", {"definition": flow(A), "version": 1}),
    post("a workflow that is not there", "/v1/runs", {"workflow": "nothing"}),
    post(
        "an input that does not fit",
        "/v1/runs",
        {
            "definition": flow(
                A, input={"properties": {"n": {"type": "integer"}}, "required": ["n"]}
            ),
            "input": {"n": "x"},
        },
    ),
    post("a workflow without tasks", "/v1/workflows", flow()),
    post("a task that waits for itself", "/v1/workflows", flow({**A, "depends_on": ["a"]})),
    post(
        "tasks in a circle",
        "/v1/workflows",
        flow({**A, "depends_on": ["b"]}, {"id": "b", "executor": "noop", "depends_on": ["a"]}),
    ),
    post(
        "a parent misspelt",
        "/v1/workflows",
        flow({"id": "extract", "executor": "noop"}, {**A, "depends_on": ["extrakt"]}),
    ),
    post("a bad expression", "/v1/workflows", flow(A, output="a[")),
    post("a bad task name", "/v1/workflows", flow({"id": "a b", "executor": "noop"})),
    post("an array that is none", "/v1/jobs:bulk", {"type": "noop"}),
    post("an array of nothing", "/v1/jobs:bulk", []),
    get("a page too large", "/v1/runs?limit=1000"),
    get("a limit in words", "/v1/runs?limit=ten"),
    get("a parameter that is not known", "/v1/runs?staet=RUNNING"),
    get("a state that is none", "/v1/runs?state=DONE"),
    get("a cursor made up", "/v1/runs?after=abc"),
    get("a cursor of another list", "/v1/runs?after=eyJ0eXBlIjoidGFzayIsInBvc2l0aW9uIjoxfQ"),
    get("a label without a value", "/v1/runs?label=team"),
    get("an event id that is none", "/v1/events?seconds=0&after=xx"),
    get("a status that is none", "/api/v1/jobs?status=complete"),
    post("a label of strange letters", "/v1/jobs", {"type": "noop", "labels": {"team": "a b"}}),
    post("a key on two lines", "/v1/jobs", {"type": "noop", "key": "a\nb"}),
    post("every dead letter", "/v1/dead-letters:replay", {}),
    get("a sort that is not offered", "/v1/runs?sort=name"),
    get("a time that is none", "/v1/runs?created_after=yesterday"),
    get("a wait too long", f"/v1/runs/{RUN}/wait?timeout=600"),
    get("a run that is not there", f"/v1/runs/{RUN}"),
    get("a run with a strange name", "/v1/runs/%00%20"),
    get("an event that never was", "/v1/events?seconds=0", **{"Last-Event-ID": "latest"}),
    get("a namespace that is no name", "/v1/runs", **{"Tidemill-Namespace": "a b"}),
    get("a path that is not there", "/v1/rnus"),
    Wrong("a method that is not there", "DELETE", "/v1/runs"),
    get("a version that is no number", "/v1/workflows/w/versions/latest"),
)
