"""What may count as JSON: finite numbers, text keys, and bounds on depth and size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from tidemill.domain.errors import Problem
from tidemill.domain.problems import Part, format_path

JSON_DEPTH_MAX = 64
JSON_PARTS_MAX = 5_000_000
INTEGER_BITS_MAX = 64
PATH_PARTS_MAX = 12
PLAIN_DEPTH = 4
PLAIN_PARTS = 32
PLAIN_INTEGER_MAX = 2**63
BAD_NUMBER = "BAD_NUMBER"
"""The code of numbers that JSON cannot hold; everything else about the value can be trusted."""

# A value, the place that holds it, and its key there: the path is spelled out only for a problem.
_Place: TypeAlias = "tuple[Any, _Place | None, Part]"


def is_plain_json(value: Any, depth: int = PLAIN_DEPTH) -> bool:
    """Whether a small value certainly is JSON, told quickly; False says nothing."""
    kind = type(value)
    if kind is str:
        return cast(str, value).isascii()
    if kind is int:
        return -PLAIN_INTEGER_MAX < cast(int, value) < PLAIN_INTEGER_MAX
    if kind is dict or kind is list:
        return depth > 0 and len(value) <= PLAIN_PARTS and _are_plain(value, depth - 1)
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def _are_plain(parts: dict[Any, Any] | list[Any], depth: int) -> bool:
    if isinstance(parts, list):
        return all(is_plain_json(part, depth) for part in parts)
    for key, part in parts.items():
        if type(key) is not str or not key.isascii() or not is_plain_json(part, depth):
            return False
    return True


def json_problems(value: Any, root: str = "") -> Iterator[Problem]:
    """Everything that keeps a value from being JSON, level by level; `root` begins each path."""
    level: list[_Place] = [(value, None, root)]
    total = 0
    for _ in range(JSON_DEPTH_MAX):
        deeper: list[_Place] = []
        for place in level:
            yield from _value_problems(place, deeper)
        total += len(deeper)
        if total > JSON_PARTS_MAX:
            message = f"has more than {JSON_PARTS_MAX:,} parts, split it"
            yield Problem(path=root, message=message, code="TOO_LARGE")
            return
        level = deeper
        if not level:
            return
    message = f"is nested too deeply, at most {JSON_DEPTH_MAX} levels are allowed"
    yield Problem(path=_path(level[0][1]), message=message, code="TOO_DEEP")


def _value_problems(place: _Place, deeper: list[_Place]) -> Iterator[Problem]:
    value = place[0]
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(key, str) and _is_text(key):
                deeper.append((part, place, key))
            else:
                message = f"has the key {key!r}, which is not text: put it in quotes"
                yield Problem(path=_path(place), message=message, code="BAD_KEY")
    elif isinstance(value, list | tuple):
        deeper.extend((part, place, index) for index, part in enumerate(value))
    else:
        complaint = _scalar_complaint(value)
        if complaint:
            code = BAD_NUMBER if isinstance(value, int | float) else "NOT_JSON"
            yield Problem(path=_path(place), message=complaint, code=code)


def _scalar_complaint(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if _is_text(value) else "is not valid text: it holds half a character"
    if isinstance(value, int):
        fits = value.bit_length() <= INTEGER_BITS_MAX
        return None if fits else "is too large a number, put it in quotes"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}, which JSON cannot hold"
    return f"is of type {type(value).__name__}, which JSON cannot hold"


def _is_text(value: str) -> bool:
    """Lone surrogates are characters to Python and an error to everybody else."""
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def _path(place: _Place | None) -> str:
    parts: list[Part] = []
    while place is not None:
        _, holder, key = place
        parts.append(key)
        place = holder
    parts.reverse()
    return format_path((parts if parts[0] else parts[1:])[:PATH_PARTS_MAX])


__all__ = ["BAD_NUMBER", "is_plain_json", "json_problems"]
