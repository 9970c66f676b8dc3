"""Whether what one task returns can be what another one takes: sure, or silent.

Values travel as JSON, so types are compared by what they look like there: a dataclass fits a
Struct with the same fields, a date fits a text. Where a type says too little, it fits.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from tidemill.sdk.typed_values import is_model

DEPTH_MAX = 12

_TEXTS = (
    inspect.StrType,
    inspect.BytesType,
    inspect.ByteArrayType,
    inspect.MemoryViewType,
    inspect.DateTimeType,
    inspect.DateType,
    inspect.TimeType,
    inspect.TimeDeltaType,
    inspect.UUIDType,
    inspect.DecimalType,
)
_LISTS = (
    inspect.ListType,
    inspect.SetType,
    inspect.FrozenSetType,
    inspect.VarTupleType,
    inspect.CollectionType,
)
_OBJECTS = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)


def fits(given: Any, wanted: Any) -> bool:
    """False only when values of the one type certainly are no values of the other."""
    if given is wanted:
        return True
    try:
        return _fits(inspect.type_info(given), inspect.type_info(wanted), DEPTH_MAX)
    except (TypeError, ValueError, NameError, AttributeError):
        return True  # a type that msgspec does not take apart


def _fits(given: inspect.Type, wanted: inspect.Type, depth: int) -> bool:
    given, wanted = _plain(given), _plain(wanted)
    if depth == 0 or _says_nothing(given) or _says_nothing(wanted):
        return True
    if isinstance(given, inspect.UnionType):
        return all(_fits(each, wanted, depth) for each in given.types)
    if isinstance(wanted, inspect.UnionType):
        return any(_fits(given, each, depth) for each in wanted.types)
    if isinstance(given, _Values) or isinstance(wanted, _Values):
        return _fits_values(given, wanted, depth)
    kind = _kind(given)
    if kind != _kind(wanted):
        return _is_widened(kind, wanted)
    match kind:
        case "list":
            return _fits_list(given, wanted, depth - 1)
        case "object":
            return _fits_object(given, wanted, depth - 1)
    return True


class _Values(inspect.Type):
    """An Enum or a Literal: one of these values."""

    values: tuple[Any, ...]


def _plain(info: inspect.Type) -> inspect.Type:
    match info:
        case inspect.Metadata():
            return _plain(info.type)
        case inspect.EnumType():
            return _Values(tuple(each.value for each in info.cls))
        case inspect.LiteralType():
            return _Values(tuple(info.values))
    return info


def _says_nothing(info: inspect.Type) -> bool:
    if isinstance(info, inspect.CustomType):
        return not is_model(info.cls)
    if isinstance(info, inspect.StructType):
        return info.array_like or info.tag is not None
    return isinstance(info, inspect.AnyType | inspect.RawType | inspect.ExtType)


def _kind(info: inspect.Type) -> str:
    match info:
        case inspect.NoneType():
            return "null"
        case inspect.BoolType():
            return "bool"
        case inspect.IntType():
            return "int"
        case inspect.FloatType():
            return "float"
        case inspect.TupleType() | inspect.NamedTupleType():
            return "list"
    if isinstance(info, _TEXTS):
        return "text"
    return "list" if isinstance(info, _LISTS) else "object"


def _is_widened(kind: str, wanted: inspect.Type) -> bool:
    if isinstance(wanted, inspect.FloatType):
        return kind == "int"
    return isinstance(wanted, inspect.DecimalType) and kind in {"int", "float"}


def _fits_values(given: inspect.Type, wanted: inspect.Type, depth: int) -> bool:
    if isinstance(given, _Values) and isinstance(wanted, _Values):
        return any(each in wanted.values for each in given.values)
    if isinstance(given, _Values):
        return any(_fits(_type_of(each), wanted, depth) for each in given.values)
    assert isinstance(wanted, _Values)
    return any(_fits(given, _type_of(each), depth) for each in wanted.values)


def _type_of(value: Any) -> inspect.Type:
    return inspect.type_info(type(value))


def _fits_list(given: inspect.Type, wanted: inspect.Type, depth: int) -> bool:
    if isinstance(given, inspect.TupleType) and isinstance(wanted, inspect.TupleType):
        pairs = zip(given.item_types, wanted.item_types, strict=False)
        same_length = len(given.item_types) == len(wanted.item_types)
        return same_length and all(_fits(one, other, depth) for one, other in pairs)
    return all(
        _fits(one, other, depth) for one in _item_types(given) for other in _item_types(wanted)
    )


def _item_types(info: inspect.Type) -> tuple[inspect.Type, ...]:
    if isinstance(info, inspect.TupleType):
        return info.item_types
    return (info.item_type,) if isinstance(info, _LISTS) else ()


def _fits_object(given: inspect.Type, wanted: inspect.Type, depth: int) -> bool:
    there, asked = _fields(given), _fields(wanted)
    if there is None:
        return True  # a dict may hold anything that is asked for
    if asked is None:
        value = getattr(wanted, "value_type", inspect.AnyType())
        return all(_fits(kind, value, depth) for kind, _ in there.values())
    missing = [name for name, (_, required) in asked.items() if required and name not in there]
    if missing:
        return False
    if getattr(wanted, "forbid_unknown_fields", False) and there.keys() - asked.keys():
        return False
    shared = there.keys() & asked.keys()
    return all(_fits(there[name][0], asked[name][0], depth) for name in shared)


def _fields(info: inspect.Type) -> dict[str, tuple[inspect.Type, bool]] | None:
    """The fields of an object by their names in JSON, and whether they must be there."""
    if isinstance(info, _OBJECTS):
        return {each.encode_name: (each.type, each.required) for each in info.fields}
    if isinstance(info, inspect.CustomType):
        fields = getattr(info.cls, "model_fields", {})
        return {
            name: (inspect.type_info(each.annotation), each.is_required())
            for name, each in fields.items()
        }
    return None


__all__ = ["fits"]
