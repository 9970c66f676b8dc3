"""From what user code returns to JSON, within bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec

from tidemill.sdk.typed_values import simplify
from tidemill.worker.culprits import find_culprit, parts_of
from tidemill.worker.failures import TaskFailure

DEPTH_MAX = 64
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_TEXTS = (str, bytes, bytearray)
_LISTS = (list, tuple)


@dataclass(frozen=True, slots=True)
class EncodedResult:
    """A result that its executor has encoded already; None stands for null."""

    data: bytes | None


def encode_result(value: Any, bytes_max: int) -> bytes | None:
    """The result as JSON, or a final TaskFailure that says what is wrong with it."""
    if value is None:
        return None
    if isinstance(value, EncodedResult):
        return value.data
    if (least := _least_size(value, bytes_max)) > bytes_max:
        raise _too_large(f"more than {least}", bytes_max)
    data = _encode(value)
    if len(data) > bytes_max:
        raise _too_large(str(len(data)), bytes_max)
    # NaN and infinity are written as null, so a text without null has none.
    if b"null" in data:
        _check_numbers(msgspec.to_builtins(value, enc_hook=simplify))
    _check_depth(data)
    return None if data == b"null" else data


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=simplify)
    except RecursionError as error:
        raise _not_serializable("it is nested too deep or holds itself") from error
    except Exception as error:
        # User code runs here too (model_dump, properties), so anything can be raised.
        raise _not_serializable(*find_culprit(value)) from error


def _least_size(value: Any, bytes_max: int) -> int:
    """A lower bound of the encoded size, so that a huge result is refused without a copy of it."""
    size = 0
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        size += len(level)
        below: list[Any] = []
        for item in level:
            parts: Collection[Any] = ()
            if isinstance(item, _TEXTS):
                size += len(item)
            elif isinstance(item, dict):
                size += 2 * len(item)
                parts = item.values()
            elif isinstance(item, _LISTS):
                parts = item
            if (least := size + len(below) + len(parts)) > bytes_max:
                return least
            below += parts
        if not below:
            return size
        level = below
    raise _not_serializable(f"it is nested more than {DEPTH_MAX} deep or holds itself")


def _check_numbers(value: Any) -> None:
    waiting: list[tuple[str, Any]] = [("$", value)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise _not_serializable(f"{place} is {item}, a number that JSON does not have")
        waiting.extend(parts_of(place, item))


def _check_depth(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= DEPTH_MAX:
        return
    depth = deepest = 0
    for byte in _STRINGS.sub(b"", data):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    if deepest > DEPTH_MAX:
        raise _not_serializable(f"it is nested {deepest} deep, {DEPTH_MAX} is the limit")


def _too_large(size: str, bytes_max: int) -> TaskFailure:
    return TaskFailure(
        "ResultTooLarge",
        f"the result takes {size} bytes as JSON, {bytes_max} is the limit; "
        "store the data elsewhere and return where it is",
        final=True,
    )


def _not_serializable(why: str, trace: str = "") -> TaskFailure:
    text = f"the result cannot be written as JSON: {why}"
    # A traceback is shown in place of the text, so it ends with the text.
    trace = f"{trace}\nResultNotSerializable: {text}\n" if trace else ""
    return TaskFailure("ResultNotSerializable", text, final=True, traceback=trace)
