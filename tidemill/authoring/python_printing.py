"""A definition as Python code: the same value, for those who go on in Python."""

from __future__ import annotations

import pprint
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from tidemill.domain.workflow import Workflow

WIDTH = 100
_INDENT = "    "


def to_python(workflow: Workflow) -> str:
    """A Python file whose `workflow` is the definition; what has its default is left out."""
    body = _code(workflow, 0)
    names = sorted(set(_names(workflow)) | {"Workflow"})
    return f"from tidemill import {', '.join(names)}\n\nworkflow = {body}\n"


def _code(value: Any, depth: int) -> str:
    match value:
        case msgspec.Struct():
            fields = [f"{name}={_code(part, depth + 1)}" for name, part in _kept(value)]
            return _call(f"{type(value).__name__}(", fields, ")", depth)
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case tuple():
            closing = ",)" if len(value) == 1 else ")"
            return _call("(", [_code(part, depth + 1) for part in value], closing, depth)
        case dict() if any(_names(value)):
            items = [f"{key!r}: {_code(part, depth + 1)}" for key, part in value.items()]
            return _call("{", items, "}", depth)
        case _:
            shown = pprint.pformat(value, width=WIDTH - depth * len(_INDENT), sort_dicts=False)
            return shown.replace("\n", "\n" + _INDENT * depth)


def _call(opening: str, parts: list[str], closing: str, depth: int) -> str:
    flat = f"{opening}{', '.join(parts)}{closing}"
    if "\n" not in flat and depth * len(_INDENT) + len(flat) <= WIDTH:
        return flat
    inner = _INDENT * (depth + 1)
    lines = "".join(f"{inner}{part},\n" for part in parts)
    return f"{opening}\n{lines}{_INDENT * depth}{closing.lstrip(',')}"


def _kept(value: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(value):
        part = getattr(value, field.name)
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if field.required or part != default:
            yield field.name, part


def _names(value: Any) -> Iterator[str]:
    """The types that the code of a value names."""
    if isinstance(value, msgspec.Struct):
        yield type(value).__name__
        for _, part in _kept(value):
            yield from _names(part)
    elif isinstance(value, Enum):
        yield type(value).__name__
    elif isinstance(value, dict):
        for part in value.values():
            yield from _names(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _names(part)


__all__ = ["to_python"]
