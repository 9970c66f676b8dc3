"""What an executor is, and what it gets: the port that plug-ins implement.

A plug-in is a class named in the entry point group `tidemill.executors`. It is built once per
worker process with the Workshop, and its `run` is called for every attempt, many at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from tidemill.domain.problems import did_you_mean, format_path
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.sdk.context import Context
from tidemill.worker.failures import TaskFailure
from tidemill.worker.library import Library
from tidemill.worker.processes import Commands
from tidemill.worker.threads import Threads

Params = TypeVar("Params", bound=msgspec.Struct)


class Call(msgspec.Struct, frozen=True):
    """One attempt, as its executor sees it."""

    params: dict[str, Any]
    inputs: dict[str, Any]
    context: Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What a worker process offers to its executors."""

    clock: Clock
    entropy: Entropy
    library: Library
    threads: Threads
    commands: Commands
    result_bytes_max: int = 256 * 1024


class Executor(Protocol):
    """Runs tasks of one kind."""

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """What is wrong with the params of a task, each text naming the field."""

    def rehearse(self, params: Mapping[str, Any], inputs: Collection[str]) -> list[str]:
        """What `check` finds, and what these names of inputs or this worker make impossible."""
        return self.check(params)

    async def run(self, call: Call) -> Any:
        """Do the work and return its result, anything that JSON can hold, or an EncodedResult.

        An exception is a failed attempt. On CancelledError the work must be stopped and `run`
        ends only when it has really stopped: until then the slot counts as taken.
        """

    async def close(self) -> None:
        """Let go of what is shared between calls; called once, at the end of the process."""
        return  # most hold nothing, and need not say so


def read_params(params: Mapping[str, Any], shape: type[Params]) -> Params:
    """The params as a value of `shape`; a final TaskFailure names the field that is wrong."""
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError:
        problems = "; ".join(problems_of(params, shape))
        raise TaskFailure("InvalidParams", problems, final=True) from None


def problems_of(params: Mapping[str, Any], shape: type[Params]) -> list[str]:
    """Everything that keeps the params from being a value of `shape`."""
    try:
        msgspec.convert(params, shape)
    except msgspec.ValidationError as error:
        return list(_field_problems(params, shape)) or [_worded("params", error)]
    return []


def _field_problems(params: Mapping[str, Any], shape: type[Params]) -> Iterator[str]:
    """The problems of each field; msgspec itself stops at the first one."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    for name in params:
        if name not in fields:
            hint = did_you_mean(name, list(fields)) or _known(list(fields))
            yield f"{format_path(['params', name])}: there is no such field{hint}"
    for name, field in fields.items():
        if name not in params:
            if field.required:
                yield f"params: the field {name!r} is missing"
            continue
        try:
            msgspec.convert(params[name], field.type)
        except msgspec.ValidationError as error:
            yield _worded(f"params.{name}", error)


def _known(names: list[str]) -> str:
    return f"; there are: {', '.join(names)}" if names else "; it takes none"


def _worded(place: str, error: msgspec.ValidationError) -> str:
    text, _, path = str(error).partition(" - at `")
    return f"{place}{path.rstrip('`').removeprefix('$')}: {text[:1].lower()}{text[1:]}"
