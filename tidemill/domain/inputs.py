"""The input of a run: defaults filled in, and checked against the workflow's schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.input_schema import compiled_schema, with_defaults
from tidemill.domain.json_values import is_plain_json, json_problems
from tidemill.domain.problems import ProblemList, show
from tidemill.domain.schema_problems import schema_problems

INPUT_BYTES_MAX = 256 * 1024
_encoder = msgspec.json.Encoder(order="deterministic")


def encode_input(schema: Mapping[str, Any], value: Any) -> bytes:
    """The input as a run keeps it, as JSON: equal inputs give equal bytes."""
    return _prepared(schema, value)[1]


def prepare_input(schema: Mapping[str, Any], value: Any) -> Any:
    """The input as a run keeps it, or InvalidInput with every problem; absent input counts as {}.

    `schema` is the `input` of a checked workflow; an empty one takes any object.
    """
    return _prepared(schema, value)[0]


def _prepared(schema: Mapping[str, Any], value: Any) -> tuple[Any, bytes]:
    given = {} if value is None else value
    if not is_plain_json(given):
        _refuse_large(given)
        _refuse_any(json_problems(given, "input"))
    if not isinstance(given, dict):
        text = f"must be an object, like {{}}, not {show(given)}"
        _refuse_any([Problem(path="input", message=text, code="WRONG_TYPE")])
    filled = with_defaults(schema, given, schema) if schema else given
    data = _encoder.encode(filled)
    _refuse_oversize(len(data))
    if schema:
        errors = compiled_schema(schema).iter_errors(filled)
        _refuse_any(each for error in errors for each in schema_problems(error, schema, ("input",)))
    return filled, data


def _refuse_large(value: Any) -> None:
    """Before every part is looked at, which takes long, and tells what cannot be encoded."""
    try:
        size = len(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return
    _refuse_oversize(size)


def _refuse_oversize(size: int) -> None:
    if size > INPUT_BYTES_MAX:
        text = (
            f"has {size:,} bytes as JSON, at most {INPUT_BYTES_MAX:,} are allowed: "
            "keep large data elsewhere and pass its address"
        )
        raise InvalidInput([Problem(path="input", message=text, code="TOO_LARGE")])


def _refuse_any(problems: Iterable[Problem]) -> None:
    found = ProblemList()
    found.extend(problems)
    if found:
        raise InvalidInput(found.all())


__all__ = ["encode_input", "prepare_input"]
