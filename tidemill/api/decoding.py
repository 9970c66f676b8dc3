"""From bytes to typed values, with everything that is wrong told at once."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from jsonschema_rs import Draft202012Validator

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.json_values import JSON_DEPTH_MAX, json_problems
from tidemill.domain.problems import ProblemList, show
from tidemill.domain.schema_problems import schema_problems

QUERY_BYTES_MAX = 16 * 1024
PARAMETERS_MAX = 200
BODY_PARTS_MAX = 1_000_000
DOUBLES_BYTES_MAX = 1024 * 1024
"""Of larger bodies nobody is told that a name stands twice: looking would hold up all others."""
PLAIN_BYTES = 4_096
"""Larger bodies tend to say a name more than once, each time in another object."""

T = TypeVar("T")
_FRACTION = re.compile(r"Expected `(int|int \| null|null \| int)`, got `float`")
WHOLE_NUMBER = "must be a whole number, written without a decimal point"

# What the fast way cannot be trusted with: long numbers, and depth, which brackets bound.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?")
_PLACE = re.compile(r" - at `\$?\.?([^`]*)`$")


class _Shape(NamedTuple):
    """A type in the three ways in which it is needed."""

    decoder: msgspec.json.Decoder[Any]
    schema: dict[str, Any]
    validator: Draft202012Validator


def decode_json(data: bytes, kind: type[T]) -> T:
    """A body as a value of a type; InvalidInput with every problem."""
    shape = shape_of(kind)
    try:
        brackets = data.count(b"{") + data.count(b"[")
        if brackets > JSON_DEPTH_MAX or _LONG_NUMBER.search(data):
            _check_bounds(data, brackets)
        value = cast(T, shape.decoder.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        value = _second_look(_parse(data), kind, error)
    _refuse_doubles(data)
    return value


def convert(raw: Any, kind: type[T], root: str = "") -> T:
    """A value made of dicts and lists as a value of a type; InvalidInput with every problem."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        _raise_any(json_problems(raw, root))
        return _second_look(raw, kind, error, root)


def decode_query(query: bytes, kind: type[T]) -> T:
    """Query parameters as a value of a type; InvalidInput with every problem."""
    return convert(_query_values(query, kind), kind)


def refuse_query(query: bytes) -> None:
    """Refuse parameters where none are known."""
    if query:
        raise InvalidInput(
            [
                Problem(path=name, message="is not a known parameter", code="UNKNOWN_FIELD")
                for name, _ in _pairs(query)
            ]
            or [Problem(path="", message="the query is not NAME=VALUE", code="BAD_FORMAT")]
        )


def shape_of(kind: Any) -> _Shape:
    """How a type is decoded and explained; made once."""
    return _shape_of(kind)


@lru_cache(maxsize=1_024)
def _shape_of(kind: Hashable) -> _Shape:
    schema = msgspec.json.schema(kind)
    return _Shape(
        msgspec.json.Decoder(cast(Any, kind)), schema, Draft202012Validator(schema, offline=True)
    )


def _check_bounds(data: bytes, brackets: int) -> None:
    """Nobody else is served meanwhile, so it must not take long, whatever was sent."""
    if brackets + data.count(b",") > BODY_PARTS_MAX:
        text = f"has more than {BODY_PARTS_MAX:,} parts: send less at once"
        raise InvalidInput([Problem(path="", message=text, code="TOO_LARGE")])
    raw = _parse(data)
    if _LONG_NUMBER.search(data) or not _is_shallow(raw):
        _raise_any(json_problems(raw))


def _is_shallow(raw: Any) -> bool:
    level = [raw] if isinstance(raw, dict | list) else []
    for _ in range(JSON_DEPTH_MAX):
        level = [
            part
            for place in level
            for part in (place.values() if type(place) is dict else place)
            if type(part) is dict or type(part) is list
        ]
    return not level


def _raise_any(problems: Iterator[Problem]) -> None:
    found = ProblemList()
    found.extend(problems)
    if found:
        raise InvalidInput(found.all())


def _parse(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        text = f"is nested too deeply, at most {JSON_DEPTH_MAX} levels are allowed"
        raise InvalidInput([Problem(path="", message=text, code="TOO_DEEP")]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput([_malformed(data, error)]) from error


def _refuse_doubles(data: bytes) -> None:
    """Reading it all once more is the sure way, and dear; small bodies mostly need it not."""
    if len(data) <= PLAIN_BYTES and b"\\" not in data:
        strings = data.split(b'"')[1::2]  # names and texts
        if len(strings) == len(set(strings)):
            return
    if len(data) <= DOUBLES_BYTES_MAX:
        _doubles.decode(data.decode())


def _without_doubles(pairs: list[tuple[str, Any]]) -> None:
    """Of two values for one name, one would be lost without a word."""
    if len(pairs) != len({name for name, _ in pairs}):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        text = f"the name {show(double)} stands twice in one object: remove one"
        raise InvalidInput([Problem(path=double, message=text, code="DUPLICATE")])


_doubles = json.JSONDecoder(object_pairs_hook=_without_doubles)


def _second_look(raw: Any, kind: type[T], error: Exception, root: str = "") -> T:
    """What the types refuse may still be right: to JSON Schema 2.0 is a whole number."""
    shape = shape_of(kind)
    found: Sequence[Problem] = _value_problems(raw, shape)
    if not found:
        try:
            # Anything else that is not strict would make a time of "null" or "123".
            return msgspec.convert(raw, kind, strict=not _FRACTION.match(str(error)))
        except msgspec.ValidationError as refused:
            found = [_worded(refused)]
    raise InvalidInput([_below(root, problem) for problem in found]) from error


def _malformed(data: bytes, error: Exception) -> Problem:
    if not data.strip():
        return Problem(path="", message="a JSON body is needed, and there is none", code="REQUIRED")
    if isinstance(error, UnicodeDecodeError):
        text = f"the body is not UTF-8: byte {error.start} cannot be read"
        return Problem(path="", message=text, code="NOT_JSON")
    return Problem(path="", message=f"the body is not JSON: {error}", code="NOT_JSON")


def _value_problems(raw: Any, shape: _Shape) -> tuple[Problem, ...]:
    found = ProblemList()
    for one in shape.validator.iter_errors(raw):
        found.extend(schema_problems(one, shape.schema))
    return found.all()


def _worded(error: Exception) -> Problem:
    """What the types refuse and no schema can say."""
    text = str(error)
    place = _PLACE.search(text)
    message = _PLACE.sub("", text)
    if _FRACTION.match(message):
        message = WHOLE_NUMBER
    if "RFC3339" in message:
        message = "must be a time such as 2027-01-15T08:00:00Z"
    message = message.replace("Expected", "must be").replace("`", "")
    return Problem(path=place.group(1) if place else "", message=message, code="WRONG_TYPE")


def _below(root: str, problem: Problem) -> Problem:
    if not root:
        return problem
    joint = "" if not problem.path or problem.path.startswith("[") else "."
    return Problem(
        path=f"{root}{joint}{problem.path}",
        message=problem.message,
        code=problem.code,
        line=problem.line,
    )


def _pairs(query: bytes) -> list[tuple[str, str]]:
    if len(query) > QUERY_BYTES_MAX:
        text = f"the query is longer than {QUERY_BYTES_MAX:,} bytes"
        raise InvalidInput([Problem(path="", message=text, code="TOO_LONG")])
    try:
        pairs = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=PARAMETERS_MAX,
        )
    except (UnicodeDecodeError, ValueError) as error:
        text = "the query cannot be read: write it as NAME=VALUE&NAME=VALUE, in UTF-8"
        raise InvalidInput([Problem(path="", message=text, code="BAD_FORMAT")]) from error
    if b"%00" in query:
        text = "holds the character 0, which no text here can hold: remove it"
        bad = [name for name, value in pairs if "\0" in name + value]
        raise InvalidInput([Problem(path=name, message=text, code="BAD_FORMAT") for name in bad])
    return pairs


def _query_values(query: bytes, kind: Any) -> dict[str, Any]:
    kinds = _field_types(kind)
    given: dict[str, list[str]] = {}
    for name, text in _pairs(query):
        given.setdefault(name, []).append(text)
    return {name: _read(name, texts, kinds.get(name)) for name, texts in given.items()}


@lru_cache(maxsize=256)
def _field_types(kind: Any) -> Mapping[str, msgspec.inspect.Type]:
    found = msgspec.inspect.type_info(kind)
    assert isinstance(found, msgspec.inspect.StructType), "a query is a Struct"
    return {field.encode_name: field.type for field in found.fields}


def _read(name: str, texts: list[str], kind: msgspec.inspect.Type | None) -> Any:
    """Texts as the type wants them; what does not fit stays text, for the checks to name it."""
    options = _options(kind)
    for option in options:
        if isinstance(option, msgspec.inspect.CollectionType | msgspec.inspect.VarTupleType):
            return [_scalar(text, _options(option.item_type)) for text in texts]
    if len(texts) > 1:
        text = f"is given {len(texts)} times, once is enough"
        raise InvalidInput([Problem(path=name, message=text, code="DUPLICATE")])
    return _scalar(texts[0], options)


def _options(kind: msgspec.inspect.Type | None) -> tuple[Any, ...]:
    """The types that a value may have, without what is only said about them."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _options(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        return tuple(option for part in kind.types for option in _options(part))
    return (kind,)


def _scalar(text: str, options: tuple[Any, ...]) -> Any:
    for option in options:
        if isinstance(option, msgspec.inspect.IntType) and _WHOLE.fullmatch(text):
            return int(text)
        if isinstance(option, msgspec.inspect.FloatType) and _NUMBER.fullmatch(text):
            return float(text)
        if isinstance(option, msgspec.inspect.BoolType) and text in {"true", "false"}:
            return text == "true"
    return text
