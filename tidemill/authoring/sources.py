"""From arguments and return values of user code to what a definition says about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from tidemill.authoring.fields import (
    NoSuchPart,
    attribute_part,
    bare,
    fields_of,
    item_part,
    type_text,
)
from tidemill.authoring.fitting import fits
from tidemill.authoring.placeholders import Reference, expression, reference_of
from tidemill.authoring.places import problem
from tidemill.domain.errors import Problem
from tidemill.domain.workflow import InputSource, Source
from tidemill.sdk.typed_values import from_json, to_json

DEPTH_MAX = 32


def references_in(value: Any, depth: int = DEPTH_MAX) -> Iterator[Reference]:
    """The placeholders in a value, however deep."""
    reference = reference_of(value)
    if reference is not None:
        yield reference
    elif depth:
        for _, part in parts_of(value) or ():
            yield from references_in(part, depth - 1)


def source_of(value: Any) -> InputSource:
    """Where an argument comes from; TypeError or ValueError for one that JSON cannot hold."""
    reference = reference_of(value)
    if reference is not None:
        return _source_of_reference(reference)
    if next(references_in(value), None) is None:
        return _source_of_constant(to_json(value))
    parts = parts_of(value)
    assert parts is not None, "what holds placeholders has parts"
    if isinstance(value, set | frozenset):
        raise TypeError("a set has no order: pass a list")
    if isinstance(value, list | tuple):
        return Source(list=tuple(source_of(part) for _, part in parts))
    return Source(object={str(key): source_of(part) for key, part in parts})


def output_of(value: Any) -> str:
    """The expression for a return value, over the results by task id."""
    reference = reference_of(value)
    if reference is not None:
        assert reference.task is not None, "the run's input is refused before"
        return expression((reference.task, *reference.path))
    if next(references_in(value), None) is None:
        text = msgspec.json.encode(to_json(value)).decode()
        return "`" + text.replace("`", "\\`") + "`"
    parts = parts_of(value)
    assert parts is not None, "what holds placeholders has parts"
    if isinstance(value, list | tuple):
        return f"[{', '.join(output_of(part) for _, part in parts)}]"
    return (
        f"{{{', '.join(f'{expression((str(key),))}: {output_of(part)}' for key, part in parts)}}}"
    )


def problems_of(path: str, value: Any, wanted: Any) -> Iterator[Problem]:
    """Why a value cannot be of the type: results by what they will be, constants as they are."""
    reference = reference_of(value)
    if reference is not None:
        if not fits(reference.kind, wanted):
            given = f"{reference.label} is {type_text(reference.kind)}"
            yield problem(path, f"takes {type_text(wanted)}, and {given}", "TYPE_MISMATCH")
        return
    if next(references_in(value), None) is not None:
        yield from _problems_of_parts(path, value, wanted)
        return
    try:
        from_json(to_json(value), wanted)
    except (TypeError, ValueError) as error:
        message = f"takes {type_text(wanted)}, and {value!r:.80} is none: {error}"
        yield problem(path, message, "TYPE_MISMATCH")


def parts_of(value: Any) -> Iterable[tuple[str | int, Any]] | None:
    """What a value is put together from, by the names that JSON has for it."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return list(enumerate(value))
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        return [(each.encode_name, getattr(value, each.name)) for each in fields]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
    return None


def _problems_of_parts(path: str, value: Any, wanted: Any) -> Iterator[Problem]:
    for key, part in parts_of(value) or ():
        try:
            kind = _part_type(wanted, key)
        except NoSuchPart:
            message = f"takes {type_text(wanted)}, and a {type(value).__name__} is given"
            yield problem(path, message, "TYPE_MISMATCH")
            return
        yield from problems_of(path, part, kind)


def _part_type(wanted: Any, key: str | int) -> Any:
    if isinstance(key, str) and fields_of(bare(wanted)) is not None:
        return attribute_part(wanted, key)[1]
    return item_part(wanted, key)[1]


def _source_of_reference(reference: Reference) -> Source:
    if reference.secret is not None:
        return Source(secret=reference.secret)
    if reference.task is None:
        return Source(input=expression(reference.path))
    if not reference.path:
        return Source(result=reference.task)
    return Source(result=reference.task, path=expression(reference.path))


def _source_of_constant(value: Any) -> InputSource:
    return Source(const=value) if isinstance(value, dict) else value


__all__ = ["output_of", "parts_of", "problems_of", "references_in", "source_of"]
