"""Runs a command: arguments as a list, never a shell string; its environment is explicit."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tidemill.worker.executor import Call, Executor, Workshop, problems_of, read_params
from tidemill.worker.executors.arguments import Argument, argument_text, unknown_inputs
from tidemill.worker.failures import TaskFailure
from tidemill.worker.processes import Command, Tail, describe_exit

TEXT_BYTES_MAX = 64 * 1024
STDERR_CHARACTERS_SHOWN = 2_000
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER")


class ShellParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command. Its first word is fixed in the definition: data never chooses the program."""

    argv: Annotated[tuple[Argument, ...], Meta(min_length=1, max_length=1_000)]
    env: dict[str, Argument] = {}
    cwd: str | None = None
    expect_exit: Annotated[tuple[int, ...], Meta(min_length=1)] = (0,)
    output: Literal["text", "json"] = "text"

    def __post_init__(self) -> None:
        if not isinstance(self.argv[0], str) or not self.argv[0]:
            raise ValueError("argv[0] must be the name of a program, not an input")


class ShellExecutor(Executor):
    """Inputs go to the command's standard input as JSON; its output is the result."""

    def __init__(self, workshop: Workshop) -> None:
        self._commands = workshop.commands
        self._result_bytes_max = workshop.result_bytes_max

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Needs `argv`."""
        if isinstance(given := params.get("argv"), str):
            words = ", ".join(given.split())
            return [f"params.argv: must be a list of words, like [{words}], not one text"]
        return problems_of(params, ShellParams)

    def rehearse(self, params: Mapping[str, Any], inputs: Collection[str]) -> list[str]:
        """Also: the inputs that argv and env take are inputs of the task."""
        if problems := self.check(params):
            return problems
        given = msgspec.convert(params, ShellParams)
        words = {f"argv[{place}]": word for place, word in enumerate(given.argv)}
        variables = {f"env.{name}": value for name, value in given.env.items()}
        return unknown_inputs(words | variables, inputs)

    async def run(self, call: Call) -> dict[str, Any]:
        """Run the command to its end; it is killed with all its children when cancelled."""
        params = read_params(call.params, ShellParams)
        command = Command(
            argv=tuple(_text(arg, call, f"argv[{n}]") for n, arg in enumerate(params.argv)),
            stdin=msgspec.json.encode(call.inputs),
            env=_environment(params, call),
            cwd=params.cwd,
        )
        limit = self._result_bytes_max if params.output == "json" else TEXT_BYTES_MAX
        stdout, stderr = Tail(limit), Tail(TEXT_BYTES_MAX)
        try:
            status = await self._commands.run(command, stdout, stderr, call.context.voice.write)
        except OSError as error:
            raise _cannot_start(error, params) from error
        return _result(params, status, stdout, stderr)


def _cannot_start(error: OSError, params: ShellParams) -> TaskFailure:
    if params.cwd is not None and not Path(params.cwd).is_dir():
        text = f"params.cwd: the folder {params.cwd!r} is not there"
        return TaskFailure("FolderNotFound", text, final=True)
    program = params.argv[0]
    match error:
        case FileNotFoundError() | NotADirectoryError():
            text = f"params.argv: the program {program!r} is not there"
            return TaskFailure("CommandNotFound", text, final=True)
        case PermissionError():
            text = f"params.argv: the program {program!r} may not be run"
            return TaskFailure("CommandNotExecutable", text, final=True)
        case _:  # the machine is short of something, which may pass
            return TaskFailure("CommandNotStarted", f"{program!r}: {error}")


def _environment(params: ShellParams, call: Call) -> dict[str, str]:
    context = call.context
    given = {name: _text(value, call, f"env.{name}") for name, value in params.env.items()}
    return {
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        **given,
        "TIDEMILL_RUN_ID": context.run_id,
        "TIDEMILL_TASK": context.task,
        "TIDEMILL_ATTEMPT": str(context.attempt),
        "TIDEMILL_IDEMPOTENCY_KEY": context.idempotency_key,
    }


def _text(argument: Argument, call: Call, place: str) -> str:
    text = argument_text(argument, call.inputs, place)
    if "\0" in text:
        raise TaskFailure("InvalidParams", f"params.{place}: holds a NUL character", final=True)
    return text


def _result(params: ShellParams, status: int, stdout: Tail, stderr: Tail) -> dict[str, Any]:
    if status not in params.expect_exit:
        words = (stderr.text or stdout.text).strip()[-STDERR_CHARACTERS_SHOWN:]
        raise TaskFailure("CommandFailed", f"{describe_exit(status)}: {words}".rstrip(": "))
    if params.output == "json":
        return {"exit_code": status, "stdout": _json(stdout)}
    result: dict[str, Any] = {"exit_code": status, "stdout": stdout.text}
    if stderr.total:
        result["stderr"] = stderr.text
    return {**result, **_cut("stdout", stdout), **_cut("stderr", stderr)}


def _cut(name: str, tail: Tail) -> dict[str, Any]:
    """What says that only the last bytes of an output are in the result."""
    return {f"{name}_bytes": tail.total, f"{name}_truncated": True} if tail.truncated else {}


def _json(stdout: Tail) -> Any:
    if stdout.truncated:
        raise TaskFailure(
            "ResultTooLarge",
            f"the command wrote {stdout.total} bytes, {len(stdout.data)} is the limit",
            final=True,
        )
    try:
        return msgspec.json.decode(stdout.data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TaskFailure("OutputNotJson", f"the command's output is not JSON: {error}") from error
