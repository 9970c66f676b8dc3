"""The input of a run: defaults filled in, and checked against the workflow's schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.input_schema import compiled_schema, with_defaults
from tidemill.domain.json_values import json_problems
from tidemill.domain.problems import ProblemList, show
from tidemill.domain.schema_problems import schema_problems

INPUT_BYTES_MAX = 256 * 1024


def prepare_input(schema: Mapping[str, Any], value: Any) -> Any:
    """The input as a run keeps it, or InvalidInput with every problem; absent input counts as {}.

    `schema` is the `input` of a checked workflow; an empty one takes any object.
    """
    given = {} if value is None else value
    _refuse_any(json_problems(given, "input"))
    if not isinstance(given, dict):
        text = f"must be an object, like {{}}, not {show(given)}"
        _refuse_any([Problem(path="input", message=text, code="WRONG_TYPE")])
    filled = with_defaults(schema, given, schema)
    _refuse_any(_size_problems(filled))
    errors = compiled_schema(schema).iter_errors(filled)
    _refuse_any(each for error in errors for each in schema_problems(error, schema, ("input",)))
    return filled


def _size_problems(value: Any) -> Iterator[Problem]:
    size = len(msgspec.json.encode(value))
    if size > INPUT_BYTES_MAX:
        text = (
            f"has {size:,} bytes as JSON, at most {INPUT_BYTES_MAX:,} are allowed: "
            "keep large data elsewhere and pass its address"
        )
        yield Problem(path="input", message=text, code="TOO_LARGE")


def _refuse_any(problems: Iterable[Problem]) -> None:
    found = ProblemList()
    found.extend(problems)
    if found:
        raise InvalidInput(found.all())


__all__ = ["prepare_input"]
