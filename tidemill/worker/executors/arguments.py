"""Texts in params that are either given there or taken from one of the task's inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import msgspec

from tidemill.worker.failures import TaskFailure


class FromInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that one of the task's inputs gives."""

    input: str


Argument: TypeAlias = str | FromInput


def unknown_inputs(arguments: Mapping[str, Argument], inputs: Collection[str]) -> list[str]:
    """A text for each argument, by its place in params, that takes an input the task lacks."""
    return [
        f"params.{place}: {_no_such_input(argument.input, inputs)}"
        for place, argument in arguments.items()
        if isinstance(argument, FromInput) and argument.input not in inputs
    ]


def argument_text(argument: Argument, inputs: Mapping[str, Any], place: str) -> str:
    """The text that is meant: an input that is no string is written as JSON."""
    if isinstance(argument, str):
        return argument
    if argument.input not in inputs:
        text = f"params.{place}: {_no_such_input(argument.input, inputs)}"
        raise TaskFailure("InvalidParams", text, final=True)
    value = inputs[argument.input]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _no_such_input(name: str, inputs: Collection[str]) -> str:
    return f"the task has no input {name!r}; it has: {', '.join(sorted(inputs)) or 'none'}"
