"""The JSON Schema that a workflow declares for its input: checked, compiled, and searched.

It comes from users and is applied in serving processes. References stay inside the schema and never
lead in circles, and patterns are matched in linear time, so that no input makes validation slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from tidemill.domain.errors import Problem
from tidemill.domain.problems import did_you_mean, format_path, show
from tidemill.domain.schema_problems import schema_problems

SCHEMA_PARTS_MAX = 10_000
COMPILED_MAX = 256

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_META = {"$ref": DIALECT}
_DATA_KEYWORDS = frozenset({"const", "default", "enum", "examples"})
_FOREIGN_REFERENCES = frozenset({"$dynamicRef", "$recursiveRef", "$id", "$anchor"})
_OPEN_KEYWORDS = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"}
)
_KEYWORDS = frozenset(
    {
        *("$schema", "$comment", "$defs", "definitions", "title", "description", "default"),
        *("examples", "deprecated", "readOnly", "writeOnly", "type", "enum", "const"),
        *("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
        *("propertyNames", "dependentRequired", "unevaluatedProperties", "not", "then", "else"),
        *("format", "items", "minItems", "maxItems"),
    }
    | _OPEN_KEYWORDS
)


class UnusableSchema(Exception):
    """A schema that cannot be applied: what is wrong, and where in the schema."""

    def __init__(self, message: str, place: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.place = place


def compiled_schema(schema: Mapping[str, Any]) -> Draft202012Validator:
    """A validator for an input schema that has been checked before."""
    return _compiled(msgspec.json.encode(schema))


@lru_cache(maxsize=COMPILED_MAX)
def _compiled(schema: bytes) -> Draft202012Validator:
    return Draft202012Validator(
        msgspec.json.decode(schema),
        pattern_options=RegexOptions(),
        validate_formats=True,
        offline=True,
    )


def input_schema_problems(schema: Mapping[str, Any]) -> Iterator[Problem]:
    """What keeps the `input` of a workflow from being a schema of an object."""
    found = list(_keyword_problems(schema))
    for error in _meta_validator().iter_errors(schema):
        found.extend(schema_problems(error, _META, ("input",)))
    if found:
        yield from found
        return
    try:
        _check_references(schema)
        validator = compiled_schema(schema)
    except UnusableSchema as error:
        yield _problem(str(error), *error.place)
    except ValidationError as error:
        # After the checks above only a pattern can be wrong.
        text = f"{error.message}: a pattern has no look-around and no back-references"
        yield _problem(text, *error.instance_path)
    else:
        yield from _default_problems(schema, validator)


def local_target(schema: Mapping[str, Any], reference: str) -> Any:
    """What a reference inside the schema points at; UnusableSchema when it leads nowhere."""
    if not reference.startswith("#/"):
        raise UnusableSchema(
            f'refers to {show(reference)}: only places in this schema, like "#/$defs/address", '
            "can be referred to"
        )
    target: Any = schema
    for key in _pointer(reference):
        if not isinstance(target, Mapping) or key not in target:
            raise UnusableSchema(f"refers to {show(reference)}, which is not in this schema")
        target = target[key]
    return target


def _pointer(reference: str) -> tuple[str, ...]:
    parts = reference.removeprefix("#/").split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def with_defaults(schema: Any, value: Any, document: Mapping[str, Any]) -> Any:
    """The value with the defaults of absent properties filled in; the value itself is kept."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(schema.get("$ref"), str):
        value = with_defaults(local_target(document, schema["$ref"]), value, document)
    for part in schema.get("allOf", ()):
        value = with_defaults(part, value, document)
    if isinstance(value, dict):
        return _object_with_defaults(schema.get("properties", {}), value, document)
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(schema["items"], item, document) for item in value]
    return value


def unknown_property(schema: Mapping[str, Any], name: str) -> str | None:
    """Why an input of this schema can have no such property; None when it can."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or name in properties:
        return None
    closed = schema.get("additionalProperties", False) is False
    if not closed or not _OPEN_KEYWORDS.isdisjoint(schema):
        return None
    return f"the workflow's input has no property {show(name)}{did_you_mean(name, properties)}"


def _object_with_defaults(
    properties: Mapping[str, Any], value: dict[str, Any], document: Mapping[str, Any]
) -> dict[str, Any]:
    filled = dict(value)
    for name, schema in properties.items():
        if name not in filled and isinstance(schema, Mapping) and "default" in schema:
            filled[name] = schema["default"]
        if name in filled:
            filled[name] = with_defaults(schema, filled[name], document)
    return filled


@lru_cache(maxsize=1)
def _meta_validator() -> Draft202012Validator:
    return Draft202012Validator(_META, offline=True)


def _problem(message: str, *place: str | int) -> Problem:
    return Problem(path=format_path(("input", *place)), message=message, code="BAD_SCHEMA")


def _keyword_problems(schema: Mapping[str, Any]) -> Iterator[Problem]:
    for keyword in schema:
        if keyword not in _KEYWORDS and keyword not in _FOREIGN_REFERENCES:
            hint = did_you_mean(keyword, _KEYWORDS)
            message = f"is not a keyword of JSON Schema{hint}"
            if not hint:
                message += '; fields of the input are listed under "properties"'
            yield _problem(message, keyword)
    if schema.get("$schema", DIALECT) not in (DIALECT, DIALECT + "#"):
        yield _problem(f"must be {show(DIALECT)}, or left out", "$schema")
    if schema.get("type", "object") != "object":
        yield _problem('must be "object": the input of a run is an object', "type")


def _check_references(schema: Mapping[str, Any]) -> None:
    """Walk the schema as if every reference were written out, within bounds."""
    parts = 0
    pending: list[tuple[Any, tuple[str | int, ...], frozenset[str]]] = [(schema, (), frozenset())]
    while pending:
        node, place, followed = pending.pop()
        parts += 1
        if parts > SCHEMA_PARTS_MAX:
            raise UnusableSchema("is too large a schema once its references are written out")
        if isinstance(node, list):
            pending.extend((item, (*place, index), followed) for index, item in enumerate(node))
        elif isinstance(node, Mapping):
            keys = node.keys() - _DATA_KEYWORDS
            pending.extend(_entry(schema, node[key], (*place, key), followed) for key in keys)


def _entry(
    schema: Mapping[str, Any], value: Any, place: tuple[str | int, ...], followed: frozenset[str]
) -> tuple[Any, tuple[str | int, ...], frozenset[str]]:
    key = place[-1]
    if not isinstance(value, str):
        return value, place, followed
    if key in _FOREIGN_REFERENCES:
        raise UnusableSchema('is not supported here: use "$ref" with "#/$defs/..."', place)
    if key != "$ref":
        return value, place, followed
    if value in followed:
        raise UnusableSchema(f"refers to itself through {show(value)}: it would never end", place)
    try:
        return local_target(schema, value), _pointer(value), followed | {value}
    except UnusableSchema as error:
        raise UnusableSchema(str(error), place) from error


def _default_problems(
    schema: Mapping[str, Any], validator: Draft202012Validator
) -> Iterator[Problem]:
    """A default that its own schema refuses would be found only when a run starts."""
    for error in validator.iter_errors(with_defaults(schema, {}, schema)):
        if error.instance_path:
            name = error.instance_path[0]
            for problem in schema_problems(error, schema):
                yield _problem(
                    f"is refused by its own schema: {problem}", "properties", name, "default"
                )


__all__ = [
    "UnusableSchema",
    "compiled_schema",
    "input_schema_problems",
    "unknown_property",
    "with_defaults",
]
