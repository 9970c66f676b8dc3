"""The parameters of a workflow function as the run's input: its JSON Schema, and its values."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.sdk.typed_values import annotations_of, is_model, to_json

_TEMPLATE = "#/$defs/{name}"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Parameters:
    """What a workflow function takes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__qualname__
        self._signature = inspect.signature(function)
        hints = annotations_of(function)
        self.types = {
            name: _type_of(parameter, hints.get(name, Any))
            for name, parameter in self._signature.parameters.items()
        }
        unnamed = [
            str(each) for each in self._signature.parameters.values() if each.kind not in _NAMED
        ]
        if unnamed:
            what = ", ".join(unnamed)
            raise TypeError(f"workflow {function.__qualname__}: {what} cannot be a field of input")

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the run's input; the same for the same signature."""
        if not self.types:
            return {"type": "object", "properties": {}, "additionalProperties": False}
        parts, definitions = _schemas(self.types)
        properties: dict[str, Any] = {}
        required: list[str] = []
        for name, parameter in self._signature.parameters.items():
            if parameter.default is inspect.Parameter.empty:
                required.append(name)
                properties[name] = parts[name]
            else:
                properties[name] = {**parts[name], "default": to_json(parameter.default)}
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return schema | ({"$defs": definitions} if definitions else {})

    def values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a run as JSON; TypeError when they do not fit the signature."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            text = f"workflow {self._name}{self._signature}: {error}"
            raise TypeError(text) from None
        return {name: to_json(value) for name, value in bound.arguments.items()}


def _type_of(parameter: inspect.Parameter, kind: Any) -> Any:
    """A default of None says that None is allowed."""
    return kind | None if parameter.default is None and kind is not Any else kind


def _schemas(kinds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    definitions: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for name, kind in kinds.items():
        try:
            (part,), found = msgspec.json.schema_components(
                [kind], schema_hook=_model_schema, ref_template=_TEMPLATE
            )
        except (TypeError, NotImplementedError) as error:
            message = f"its type has no JSON form: {error}"
            raise InvalidWorkflow([Problem(path=name, message=message, code="NOT_JSON")]) from error
        definitions |= found
        parts[name] = part
    return _lifted(parts, definitions), _lifted(definitions, definitions)


def _model_schema(kind: type) -> dict[str, Any]:
    if is_model(kind):
        schema: dict[str, Any] = kind.model_json_schema()  # type: ignore[attr-defined]
        return schema
    raise NotImplementedError(f"{kind.__name__} is no msgspec type, dataclass or pydantic model")


def _lifted(value: Any, definitions: dict[str, Any]) -> Any:
    """Move the definitions that models bring along to the top, where their references lead."""
    if isinstance(value, dict):
        own = value.get("$defs")
        if isinstance(own, dict) and value is not definitions:
            definitions |= {name: _lifted(part, definitions) for name, part in own.items()}
            value = {key: part for key, part in value.items() if key != "$defs"}
        return {key: _lifted(part, definitions) for key, part in list(value.items())}
    return [_lifted(part, definitions) for part in value] if isinstance(value, list) else value


def return_type(function: Callable[..., Any]) -> Any:
    """What a function says it returns; anything where it says nothing."""
    kind = annotations_of(function).get("return", Any)
    return types.NoneType if kind is None else kind


__all__ = ["Parameters", "return_type"]
