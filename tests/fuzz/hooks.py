"""What the fuzzer cannot know from the document: how long to wait, and what semantics refuse."""

from __future__ import annotations

import json
import os
from itertools import count
from typing import Any

import schemathesis

from tidemill.api.decoding import WHOLE_NUMBER

# Refusals of requests that fit the schema: rules that JSON Schema cannot say.
SEMANTIC = {
    "BAD_CURSOR",
    "BAD_EXPRESSION",
    "BAD_KEY",
    "BAD_NAME",
    "BAD_NUMBER",  # beyond 64 bits
    "BAD_SCHEMA",  # of the input of a workflow
    "BAD_SOURCE",
    "BAD_START",
    "CYCLE",
    "DUPLICATE_ID",
    "EMPTY",
    "LOOK_ALIKE_ID",
    "NO_FILTER",  # all dead letters, and nobody said so
    "SELF_LOOP",
    "UNKNOWN_INPUT",
    "UNKNOWN_TASK",
    "UNKNOWN_TYPE",
}

KEY_FIELDS = {"queues", "scopes", "service_account"}
"""Of keys, which do not all go together."""

_samples = json.loads(os.environ.get("TIDEMILL_FUZZ_SAMPLES", '{"types": [], "paths": {}}'))
_turns = count()


@schemathesis.serializer("application/x-ndjson")
def as_lines(_context: Any, value: Any) -> bytes:
    """One line."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


@schemathesis.check
def refused_for_what_no_schema_says(_context: Any, response: Any, case: Any) -> None:
    """What fits the document is refused for its meaning only, and every reason has its code."""
    if response.status_code != 400 or not _is_positive(case):
        return
    errors = response.json()["errors"]
    told = [error for error in errors if error["code"] != "MORE_PROBLEMS"]  # which only counts
    codes = {error["code"].upper() for error in told if not _no_schema_says(error)}
    assert told, "a refusal without a reason"
    assert codes <= SEMANTIC, f"refused for {sorted(codes)}: {response.text[:500]}"


def _no_schema_says(error: dict[str, str]) -> bool:
    """Refusals with a code that others have for what a schema does say."""
    match error["code"].upper():
        case "BAD_FORMAT":
            return "character 0" in error["message"]
        case "INVALID":
            return error["path"] in KEY_FIELDS
        case _:
            return error["message"] == WHOLE_NUMBER


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Mostly ask about things that are there, and for streams and waits that end at once."""
    path = case.operation.path
    if _is_positive(case) and next(_turns) % 4:
        _use_samples(case, path)
    if path.endswith("/events"):
        _shorten(case, "seconds", 86_400)
    elif path.endswith("/wait"):
        _shorten(case, "timeout", 60)


def _is_positive(case: Any) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_positive


def _use_samples(case: Any, path: str) -> None:
    if case.headers:
        case.headers.pop("Tidemill-Namespace", None)
    if isinstance(case.body, dict) and isinstance(case.body.get("type"), str):
        case.body["type"] = _one_of(_samples["types"])
    known = max((begin for begin in _samples["paths"] if path.startswith(begin)), default="")
    for name in case.path_parameters or {}:
        values = _samples["paths"].get(known, {}).get(name)
        if values:
            case.path_parameters[name] = _one_of(values)


def _one_of(values: list[str]) -> str:
    return values[next(_turns) % len(values)]


def _shorten(case: Any, name: str, most: float) -> None:
    query = dict(case.query or {})
    try:
        wrong = name in query and not 0 <= float(query[name]) <= most
    except (TypeError, ValueError):
        wrong = True
    if not wrong:
        case.query = {**query, name: "0"}
