"""The parts of a type: what an attribute or an item of such a value is called in JSON, and is."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeAlias, Union

import msgspec

from tidemill.domain.problems import did_you_mean
from tidemill.sdk.typed_values import annotations_of, is_model

Part: TypeAlias = tuple[str | int, Any]
"""The step in a JSON path, and the type of what is there."""

_SEQUENCES = (list, tuple, set, frozenset)


class NoSuchPart(Exception):
    """A value of this type certainly has no such part."""


def attribute_part(kind: Any, name: str) -> Part:
    """What `value.name` is, for a value of the type; anything may be in a value of any type."""
    kind = bare(kind)
    fields = fields_of(kind)
    if fields is not None:
        if name not in fields:
            hint = did_you_mean(name, list(fields)) or f"; it has: {', '.join(fields) or 'none'}"
            raise NoSuchPart(f"{type_text(kind)} has no field {name!r}{hint}")
        return fields[name]
    if _is_mapping(kind):
        raise NoSuchPart(f'is {type_text(kind)}: write ["{name}"], not .{name}')
    if _is_plain(kind):
        raise NoSuchPart(f"is {type_text(kind)}, which has no field {name!r}")
    return name, Any


def item_part(kind: Any, key: Any) -> Part:
    """What `value[key]` is, for a value of the type."""
    kind = bare(kind)
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise NoSuchPart(f"takes a name or a number in [], not {type(key).__name__}")
    if fields_of(kind) is not None and not _is_named_tuple(kind):
        raise NoSuchPart(f"is {type_text(kind)}: write .{key}, not [{key!r}]")
    if typing.is_typeddict(kind):
        return _typed_dict_part(kind, key)
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if _is_mapping(origin):
        if isinstance(key, int):
            raise NoSuchPart(f"is {type_text(kind)}, whose keys are text in JSON, not {key!r}")
        return key, arguments[1] if len(arguments) == 2 else Any
    if origin in _SEQUENCES or _is_named_tuple(kind):
        if isinstance(key, str):
            raise NoSuchPart(f"is {type_text(kind)}, which has no item {key!r}")
        return key, _sequence_item(origin, arguments, key)
    if _is_plain(kind):
        raise NoSuchPart(f"is {type_text(kind)}, which has no items")
    return key, Any


def fields_of(kind: Any) -> Mapping[str, Part] | None:
    """The attributes of a class with declared fields; None for any other type."""
    origin = typing.get_origin(kind) or kind
    if not isinstance(origin, type):
        return None
    if issubclass(origin, msgspec.Struct):
        return {each.name: (each.encode_name, each.type) for each in msgspec.structs.fields(kind)}
    if dataclasses.is_dataclass(origin):
        hints = annotations_of(origin)
        return {
            each.name: (each.name, hints.get(each.name, Any)) for each in dataclasses.fields(origin)
        }
    if is_model(origin):
        fields: Mapping[str, Any] = getattr(origin, "model_fields", {})
        return {name: (name, each.annotation) for name, each in fields.items()}
    if _is_named_tuple(origin):
        hints = annotations_of(origin)
        names: Collection[str] = origin._fields  # type: ignore[attr-defined]
        return {name: (place, hints.get(name, Any)) for place, name in enumerate(names)}
    return None


def bare(kind: Any) -> Any:
    """The type without Annotated and without None, as far as one type is left."""
    if typing.get_origin(kind) is Annotated:
        return bare(typing.get_args(kind)[0])
    if typing.get_origin(kind) in {Union, types.UnionType}:
        left = [each for each in typing.get_args(kind) if each is not types.NoneType]
        return bare(left[0]) if len(left) == 1 else Any
    return kind


def type_text(kind: Any) -> str:
    """A type as people write it."""
    if kind is None or kind is types.NoneType:
        return "None"
    if typing.get_origin(kind) is Annotated:
        return type_text(typing.get_args(kind)[0])
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) in {Union, types.UnionType}:
        return " | ".join(type_text(each) for each in arguments)
    name = getattr(typing.get_origin(kind) or kind, "__name__", str(kind))
    if not arguments:
        return str(name)
    if typing.get_origin(kind) is typing.Literal:
        return f"{name}[{', '.join(map(repr, arguments))}]"
    return f"{name}[{', '.join('...' if each is ... else type_text(each) for each in arguments)}]"


def _typed_dict_part(kind: Any, key: str | int) -> Part:
    hints = annotations_of(kind)
    if key not in hints:
        hint = did_you_mean(str(key), list(hints)) or f"; it has: {', '.join(hints)}"
        raise NoSuchPart(f"{type_text(kind)} has no key {key!r}{hint}")
    found = hints[str(key)]
    if typing.get_origin(found) in {typing.Required, typing.NotRequired}:
        found = typing.get_args(found)[0]
    return str(key), found


def _sequence_item(origin: Any, arguments: tuple[Any, ...], key: int) -> Any:
    if not arguments:
        return Any
    if origin is not tuple or arguments[-1] is ...:
        return arguments[0]
    return arguments[key] if -len(arguments) <= key < len(arguments) else Any


def _is_mapping(kind: Any) -> bool:
    origin = typing.get_origin(kind) or kind
    return typing.is_typeddict(kind) or (isinstance(origin, type) and issubclass(origin, Mapping))


def _is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _is_plain(kind: Any) -> bool:
    return kind in (str, int, float, bool, bytes, types.NoneType, None)


__all__ = [
    "NoSuchPart",
    "Part",
    "attribute_part",
    "bare",
    "fields_of",
    "item_part",
    "type_text",
]
