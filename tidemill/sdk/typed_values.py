"""Values of user code from and to JSON: msgspec types, dataclasses, pydantic models."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.inspect import CustomType, type_info

_AS_IT_IS = (Any, object, inspect.Parameter.empty)


def is_model(kind: Any) -> bool:
    """Whether a class reads and writes itself, as pydantic's models do."""
    return isinstance(kind, type) and hasattr(kind, "model_validate")


def simplify(value: Any) -> Any:
    """What msgspec does not know: models of pydantic and its like say themselves what they are."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise NotImplementedError


def to_json(value: Any) -> Any:
    """The value as JSON holds it, sets in order; TypeError or ValueError where JSON cannot."""
    try:
        return msgspec.to_builtins(value, enc_hook=simplify, str_keys=True, order="deterministic")
    except (NotImplementedError, RecursionError) as error:
        raise TypeError(f"JSON cannot hold a value of type {type(value).__name__}") from error


def from_json(value: Any, kind: Any) -> Any:
    """A JSON value as a value of the type; ValueError says what does not fit and where."""
    if not is_readable(kind):
        return value
    try:
        return msgspec.convert(value, kind, dec_hook=_read_model, str_keys=True)
    except msgspec.ValidationError as error:
        raise ValueError(_worded(error)) from error


def is_readable(kind: Any) -> bool:
    """Whether JSON can be turned into such values; others are left as JSON has them."""
    if kind in _AS_IT_IS:
        return False
    try:
        return not _has_foreign_part(type_info(kind), set())
    except (TypeError, ValueError, NameError, AttributeError):
        return False  # nothing that msgspec takes apart


def annotations_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The types of parameters and of `return`, without those whose names cannot be found."""
    hints = _hints(function)
    if hints is not None:
        return hints
    scope = getattr(function, "__globals__", None)
    each = {
        name: _hints(types.SimpleNamespace(__annotations__={name: annotation}), scope)
        for name, annotation in inspect.get_annotations(function).items()
    }
    return {name: found[name] for name, found in each.items() if found is not None}


def _hints(holder: Any, scope: dict[str, Any] | None = None) -> dict[str, Any] | None:
    try:
        return typing.get_type_hints(holder, scope, include_extras=True)
    except Exception:  # noqa: BLE001  (annotations are user code: evaluating them may raise anything)
        return None


class Arguments:
    """Turns JSON inputs into what the parameters of a function are annotated with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        hints = annotations_of(function)
        self._types = {
            name: kind for name, kind in hints.items() if name != "return" and is_readable(kind)
        }

    def of(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments; ValueError names the input that does not fit."""
        arguments = dict(inputs)
        for name, kind in self._types.items():
            if name in arguments:
                arguments[name] = _argument(name, arguments[name], kind)
        return arguments


def _argument(name: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, dec_hook=_read_model, str_keys=True)
    except msgspec.ValidationError as error:
        raise ValueError(f"inputs.{name}: {_worded(error)}") from error


def _read_model(kind: type, value: Any) -> Any:
    if is_model(kind):
        return kind.model_validate(value)  # type: ignore[attr-defined]
    raise NotImplementedError


def _has_foreign_part(info: Any, seen: set[int]) -> bool:
    if id(info) in seen:
        return False
    seen.add(id(info))
    if isinstance(info, CustomType):
        return not is_model(info.cls)
    if isinstance(info, tuple):
        return any(_has_foreign_part(part, seen) for part in info)
    if not isinstance(info, msgspec.Struct) or not type(info).__module__.startswith("msgspec"):
        return False
    parts = (getattr(info, name) for name in info.__struct_fields__)
    return any(_has_foreign_part(part, seen) for part in parts if isinstance(part, _NESTED))


_NESTED = (tuple, msgspec.Struct)


def _worded(error: Exception) -> str:
    text, _, path = " ".join(str(error).split()).partition(" - at `")
    place = path.rstrip("`").removeprefix("$").removeprefix(".")
    return f"{place}: {text}" if place else text


__all__ = [
    "Arguments",
    "annotations_of",
    "from_json",
    "is_model",
    "is_readable",
    "simplify",
    "to_json",
]
