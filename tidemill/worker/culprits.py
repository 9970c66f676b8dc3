"""Where in a result the thing is that JSON cannot hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from tidemill.domain.problems import format_path
from tidemill.sdk.typed_values import simplify
from tidemill.worker.failures import user_traceback

DEPTH_MAX = 100
_FIX = "return text, numbers, lists and dicts instead"


class Culprit(NamedTuple):
    """What is wrong, with its place, and the traceback if user code raised it."""

    why: str
    trace: str = ""


def find_culprit(value: Any) -> Culprit:
    """Follow the first part that cannot be encoded down to where it is no part's fault."""
    place = "$"
    for _ in range(DEPTH_MAX):
        try:
            inside = next((part for part in parts_of(place, value) if _fault(part[1])), None)
        except Exception as error:  # noqa: BLE001  (a property of the user may raise anything)
            return _raised(place, error)
        if inside is None:
            break
        place, value = inside
    return _describe(place, value)


def parts_of(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a value is made of, each with its place."""
    if isinstance(value, dict):
        yield from ((place + _step(key), part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"{place}[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        yield from ((place + _step(name), getattr(value, name)) for name in names)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value))
        yield from ((place + _step(name), getattr(value, name)) for name in names)


def _step(key: Any) -> str:
    path = format_path([str(key).encode(errors="replace").decode()])
    return path if path.startswith("[") else f".{path}"


def _fault(value: Any) -> Exception | None:
    try:
        msgspec.json.encode(value, enc_hook=simplify)
    except Exception as error:  # noqa: BLE001  (user code runs here too)
        return error
    return None


def _describe(place: str, value: Any) -> Culprit:
    match _fault(value):
        case NotImplementedError() | TypeError() if isinstance(value, dict):
            kinds = sorted({type(key).__name__ for key in value if not isinstance(key, str)})
            return Culprit(f"{place} has keys of type {', '.join(kinds)}; keys must be text")
        case NotImplementedError():
            return Culprit(f"{place} is of type {type(value).__name__}; {_FIX}")
        case UnicodeEncodeError():
            return Culprit(f"{place} holds text that is not valid Unicode")
        case RecursionError():
            return Culprit(f"{place} is nested too deep or holds itself")
        case None:
            return Culprit(f"{place} changes while it is written")
        case error:
            return _raised(place, error)


def _raised(place: str, error: Exception) -> Culprit:
    why = f"{place}: {type(error).__name__}: {error}"
    return Culprit(why, user_traceback(error))
