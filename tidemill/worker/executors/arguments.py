"""Texts in params that are either given there or taken from one of the task's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from tidemill.worker.failures import TaskFailure


class FromInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that one of the task's inputs gives."""

    input: str


Argument: TypeAlias = str | FromInput


def argument_text(argument: Argument, inputs: Mapping[str, Any], place: str) -> str:
    """The text that is meant: an input that is no string is written as JSON."""
    if isinstance(argument, str):
        return argument
    if argument.input not in inputs:
        known = ", ".join(sorted(inputs)) or "none"
        raise TaskFailure(
            "InvalidParams",
            f"params.{place}: the task has no input {argument.input!r}; it has: {known}",
            final=True,
        )
    value = inputs[argument.input]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
