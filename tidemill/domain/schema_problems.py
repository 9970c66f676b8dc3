"""The findings of a JSON Schema validator, told so that a person knows what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from jsonschema_rs import ValidationError

from tidemill.domain.errors import Problem
from tidemill.domain.patterns import PATTERN_WORDS
from tidemill.domain.problems import (
    PROBLEMS_MAX,
    Part,
    did_you_mean,
    format_path,
    listed,
    show,
)
from tidemill.domain.workflow import NAME_PATTERN

MESSAGE_CHARACTERS_MAX = 200
UNKNOWN = "is not a known field"

_TYPES = {
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_RANGES = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_CODES = {
    "minLength": "TOO_SHORT",
    "minItems": "TOO_SHORT",
    "minProperties": "TOO_SHORT",
    "maxLength": "TOO_LONG",
    "maxItems": "TOO_LONG",
    "maxProperties": "TOO_LONG",
    "const": "NOT_ALLOWED",
    "falseSchema": "NOT_ALLOWED",
    "uniqueItems": "NOT_UNIQUE",
    "format": "BAD_FORMAT",
}

# What people write who know other systems.
_SYNONYMS = {
    "arguments": "params",
    "args": "params",
    "dependencies": "depends_on",
    "depends": "depends_on",
    "jobs": "tasks",
    "name": "id",
    "needs": "depends_on",
    "parameters": "params",
    "retries": "retry",
    "steps": "tasks",
    "timeout": "timeouts",
    "type": "executor",
    "upstream": "depends_on",
    "uses": "executor",
    "with": "params",
}


def schema_problems(
    error: ValidationError, schema: Mapping[str, Any], root: Sequence[Part] = ()
) -> Iterator[Problem]:
    """One finding as one or more problems; `root` begins each path."""
    path = [*root, *error.instance_path]
    secret = _node(schema, error.schema_path).get("writeOnly")
    match error.kind.name:
        case "additionalProperties" | "unevaluatedProperties":
            known = _known_fields(schema, error.schema_path)
            for count, field in enumerate(error.kind.as_dict()["unexpected"]):
                # Finding what may be meant is slow, and nobody reads so many.
                text = _unknown_text(field, known) if count < PROBLEMS_MAX else UNKNOWN
                yield _problem([*path, field], text, "UNKNOWN_FIELD")
        case "required":
            yield _problem([*path, error.kind.value], "is required", "REQUIRED")
        case "anyOf" if not secret:
            yield from _union_problems(error, schema, root)
        case "propertyNames":
            yield _problem(path, f"has a key that is refused: {_text(error.kind.value)}", "BAD_KEY")
        case name:
            text = _secret_text(error) if secret else _text(error)
            yield _problem(path, text, _code(name, error))


def _problem(path: Sequence[Part], message: str, code: str) -> Problem:
    return Problem(path=format_path(path), message=message, code=code)


def _node(schema: Mapping[str, Any], place: Sequence[Part]) -> Mapping[str, Any]:
    """The part of a schema whose keyword, the last of the path, was not kept to."""
    here: Any = schema
    try:
        for part in place[:-1]:
            here = here[part]
    except (LookupError, TypeError):  # a place in another schema, which this one refers to
        return {}
    return cast("Mapping[str, Any]", here)


def _known_fields(schema: Mapping[str, Any], place: Sequence[Part]) -> list[str]:
    fields = _node(schema, place).get("properties", ())
    return [name for name in fields if not name.startswith("$")]


def _unknown_text(field: str, known: Sequence[str]) -> str:
    synonym = _SYNONYMS.get(field)
    if synonym in known:
        return f"{UNKNOWN}, did you mean {show(synonym)}?"
    hint = did_you_mean(field, known)
    if hint or not known:
        return f"{UNKNOWN}{hint}"
    constant = "; an object as it stands is written const: {...}" if "const" in known else ""
    return f"{UNKNOWN}, known are {listed(known, 'and')}{constant}"


def _union_problems(
    error: ValidationError, schema: Mapping[str, Any], root: Sequence[Part]
) -> Iterator[Problem]:
    """Of several alternatives only the one that was meant is worth talking about."""
    branches = _worth_naming(error.kind.as_dict()["context"])
    meant = [branch for branch in branches if not _is_other_kind(branch, error)]
    if len(branches) == 1 or len(meant) == 1:
        for inner in (meant or branches)[0]:
            yield from schema_problems(inner, schema, root)
    elif meant:
        yield _problem([*root, *error.instance_path], _clip(error.message), "INVALID")
    else:
        allowed = dict.fromkeys(_allowed(branch[0]) for branch in branches)
        text = f"must be {listed(list(allowed))}, not {_kind_text(error.instance)}"
        yield _problem([*root, *error.instance_path], text, "WRONG_TYPE")


def _worth_naming(branches: Sequence[Sequence[ValidationError]]) -> Sequence[Any]:
    """The alternatives without null: who gives a value has no use for it."""
    valued = [one for one in branches if one[0].kind.as_dict().get("types") != ["null"]]
    return valued or branches


def _is_other_kind(branch: Sequence[ValidationError], error: ValidationError) -> bool:
    """Whether an alternative is out of the question already by the kind of value it takes."""
    first = branch[0]
    same_place = len(first.instance_path) == len(error.instance_path)
    return same_place and first.kind.name in ("type", "enum")


def _allowed(error: ValidationError) -> str:
    if error.kind.name == "enum":
        return listed([show(option) for option in error.kind.value])
    return listed([_TYPES[name] for name in error.kind.value])


def _code(name: str, error: ValidationError) -> str:
    if name in _RANGES:
        return "OUT_OF_RANGE"
    if name == "pattern":
        return "BAD_NAME" if error.kind.value == NAME_PATTERN else "BAD_FORMAT"
    if name in ("type", "enum"):
        return "WRONG_TYPE" if name == "type" else "NOT_ALLOWED"
    return _CODES.get(name, "INVALID")


def _secret_text(error: ValidationError) -> str:
    """What is wrong with a value that goes in and never comes out: nothing of it is shown."""
    match error.kind.name:
        case "type":
            return f"must be {_allowed(error)}"
        case "minLength" | "maxLength":
            return _text(error)
        case _:
            return "is refused, and not shown here: see what the field may be"


def _text(error: ValidationError) -> str:
    value: Any = error.instance
    match error.kind.name:
        case "type":
            return _type_text(error.kind.value, value)
        case "enum":
            options = [show(option) for option in error.kind.value]
            words = [option for option in error.kind.value if isinstance(option, str)]
            hint = did_you_mean(value, words) if isinstance(value, str) else ""
            return f"must be {listed(options)}, not {show(value)}{hint}"
        case "pattern" if error.kind.value == NAME_PATTERN:
            return _name_text(value)
        case "pattern" if error.kind.value in PATTERN_WORDS:
            return f"must be {PATTERN_WORDS[error.kind.value]}, not {show(value)}"
        case "minLength" | "minItems" if not value:
            return "must not be empty"
        case "minLength":
            return f"has {len(value):,} characters, at least {error.kind.value:,} are needed"
        case "maxLength":
            return f"has {len(value):,} characters, at most {error.kind.value:,} are allowed"
        case "maxItems":
            return f"has {len(value):,} entries, at most {error.kind.value:,} are allowed"
        case "falseSchema" if error.schema_path[-1:] == ["additionalProperties"]:
            return "takes no fields"
        case "falseSchema":
            return "is not allowed"
        case _:
            return _clip(error.message)


def _type_text(allowed: Sequence[str], value: Any) -> str:
    wanted = listed([_TYPES[name] for name in allowed])
    text = f"must be {wanted}, not {_kind_text(value)}"
    if value is None:
        return f"{text}: give it a value or leave the field out"
    if "string" in allowed and isinstance(value, bool | int | float):
        return f"{text}: put it in quotes, like {show(show(value))}"
    if "array" in allowed and isinstance(value, str):
        return f"{text}: write it as a list, like [{value[:40]}]"
    return text


def _kind_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return show(value)


def _name_text(value: str) -> str:
    text = f"{show(value)} is not a name: use letters a-z and A-Z, digits, '.', '_' and '-'"
    if value.isascii():
        return f"{text}, beginning with a letter or a digit"
    strange = listed([show(each) for each in dict.fromkeys(value) if not each.isascii()][:5], "and")
    return f"{text}; letters of other alphabets, which can look the same, are refused ({strange})"


def _clip(text: str) -> str:
    if len(text) <= MESSAGE_CHARACTERS_MAX:
        return text
    return text[:MESSAGE_CHARACTERS_MAX] + "…"


__all__ = ["schema_problems"]
