"""Calls Python functions: coroutines on the loop, others in threads, or either in a child process.

A coroutine that computes without awaiting blocks the loop and with it the pings: its worker loses
its session after some seconds, and all its tasks run again. Use a plain function, or
`isolation: process`, for work that needs the processor. A watchdog tells who it was.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from tidemill.sdk.typed_values import Arguments
from tidemill.worker.child import Beat, Line, Raised, Request, Returned, Step
from tidemill.worker.executor import Call, Executor, Workshop, problems_of, read_params
from tidemill.worker.failures import TaskFailure
from tidemill.worker.library import UnknownFunction
from tidemill.worker.processes import (
    LINGER_SECONDS,
    Command,
    Inlet,
    Tail,
    describe_exit,
    inlet,
)
from tidemill.worker.results import EncodedResult, encode_result

_RESTS = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
_SLACK_BYTES = 1024 * 1024  # a traceback and the names around a result
_TAIL_BYTES = 2_000
_lines = msgspec.json.Decoder(Line)


class PythonParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function, as `module:name`, of the modules that the worker was started with."""

    function: str
    isolation: Literal["thread", "process"] = "thread"


class PythonExecutor(Executor):
    """The task's inputs become keyword arguments, what the function returns becomes its result."""

    def __init__(self, workshop: Workshop) -> None:
        self._library = workshop.library
        self._threads = workshop.threads
        self._commands = workshop.commands
        self._result_bytes_max = workshop.result_bytes_max
        self._targets: dict[str, _Target] = {}

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Needs `function`."""
        return problems_of(params, PythonParams)

    def rehearse(self, params: Mapping[str, Any], inputs: Collection[str]) -> list[str]:
        """Also: the function exists and takes inputs of these names."""
        if problems := self.check(params):
            return problems
        name: str = params["function"]
        if name.partition(":")[0] in self._library.broken:
            return []  # whoever loaded the library knows why
        try:
            target = self._find(name)
        except UnknownFunction as error:
            return [f"params.function: {error}"]
        complaint = target.complaint(dict.fromkeys(inputs))
        return [complaint] if complaint else []

    async def run(self, call: Call) -> Any:
        """Call the function where its params and its kind ask for it."""
        params = read_params(call.params, PythonParams)
        target = self._find(params.function)
        if complaint := target.complaint(call.inputs):
            raise TaskFailure("InvalidInputs", complaint, final=True)
        if params.isolation == "process":
            return await self._run_in_child(params.function, call)
        if target.is_coroutine:
            return await target.function(**target.arguments(call.inputs))
        result = await self._threads.run(lambda: self._call(target, call.inputs))
        return await result if inspect.isawaitable(result) else result

    def _find(self, name: str) -> _Target:
        if name not in self._targets:
            self._targets[name] = _Target(name, self._library.find(name))
        return self._targets[name]

    def _call(self, target: _Target, inputs: dict[str, Any]) -> Any:
        value = target.function(**target.arguments(inputs))
        if inspect.isawaitable(value):
            return value
        try:
            # Here in the thread: encoding a large result would hold the loop up.
            return EncodedResult(encode_result(value, self._result_bytes_max))
        except TaskFailure as failure:
            refused = failure.with_traceback(None)
        del value  # a huge one must not live on in the frames of the error that refuses it
        raise refused

    async def _run_in_child(self, function: str, call: Call) -> EncodedResult:
        lifeline, ours = os.pipe()
        try:
            async with inlet(self._result_bytes_max + _SLACK_BYTES) as voice:
                return await self._converse(function, call, voice, lifeline)
        finally:
            os.close(lifeline)
            os.close(ours)

    async def _converse(
        self, function: str, call: Call, voice: Inlet, lifeline: int
    ) -> EncodedResult:
        assert voice.theirs is not None
        command = Command(
            argv=(sys.executable, "-m", "tidemill.worker.child", str(voice.theirs), str(lifeline)),
            stdin=msgspec.json.encode(self._request(function, call)),
            pass_fds=(voice.theirs, lifeline),
        )
        call.context.secrets.expect_all()  # the child asks for them unseen
        stdout, stderr = Tail(_TAIL_BYTES), Tail(_TAIL_BYTES)
        listening = asyncio.create_task(_listen(voice, call))
        try:
            status = await self._commands.run(command, stdout, stderr, call.context.voice.write)
            voice.hand_over()  # the child is gone: now the pipe can end
            await asyncio.wait([listening], timeout=LINGER_SECONDS)
            ending = listening.result() if listening.done() else None
        finally:
            listening.cancel()
        return _result(ending, status, stderr)

    def _request(self, function: str, call: Call) -> Request:
        context = call.context
        return Request(
            function=function,
            inputs=call.inputs,
            imports=self._library.imports,
            run_id=context.token.run_id,
            position=context.token.position,
            epoch=context.token.epoch,
            workflow=context.workflow,
            task=context.task,
            attempt=context.attempt,
            result_bytes_max=self._result_bytes_max,
            secrets=context.secrets.sources,
        )


class _Target:
    """A function, and what need not be found out about it again for every call."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_coroutine = inspect.iscoroutinefunction(function)
        self._name = name
        self._arguments = Arguments(function)
        self._signature: inspect.Signature | None = None
        with suppress(ValueError):  # some built-in callables have none
            self._signature = inspect.signature(function)
        self._named = _named(self._signature)

    def complaint(self, inputs: dict[str, Any]) -> str | None:
        """Why these inputs do not fit, known before anything runs: no retry will mend them."""
        if self._named.required <= inputs.keys() <= self._named.all:
            return None
        try:
            if self._signature is not None:
                self._signature.bind(**inputs)
        except TypeError as error:
            return f"inputs: {self._name}: {error}"
        return None

    def arguments(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs as values of the types that the function is annotated with."""
        try:
            return self._arguments.of(inputs)
        except ValueError as error:
            raise TaskFailure("InvalidInputs", str(error), final=True) from None


class _Named(NamedTuple):
    """Arguments that can be given by name."""

    required: frozenset[str]
    all: frozenset[str]


def _named(signature: inspect.Signature | None) -> _Named:
    found = signature.parameters.values() if signature is not None else ()
    named = [one for one in found if one.kind in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}]
    # What can only be given by its place cannot be given at all: nothing fits then.
    required = [one.name for one in found if one.default is one.empty and one.kind not in _RESTS]
    return _Named(frozenset(required), frozenset(one.name for one in named))


async def _listen(voice: Inlet, call: Call) -> Returned | Raised | None:
    """What the child says, up to its last word; None when it ends without one."""
    try:
        while data := await voice.reader.readline():
            line: Line = _lines.decode(data)
            match line:
                case Step(fraction, message):
                    call.context.progress(fraction, message)
                case Beat():
                    call.context.heartbeat()
                case Returned() | Raised():
                    return line
    except (ValueError, msgspec.DecodeError):
        """The child was killed in the middle of a line, or its code wrote to the pipe."""
    return None


def _result(ending: Returned | Raised | None, status: int, stderr: Tail) -> EncodedResult:
    match ending:
        case Returned(result):
            data = bytes(result)
            return EncodedResult(None if data == b"null" else data)
        case Raised():
            raise TaskFailure(
                ending.kind,
                ending.message,
                final=ending.final,
                retry_after_seconds=ending.retry_after_seconds,
                traceback=ending.traceback,
            )
        case None:
            raise TaskFailure("ChildCrashed", _last_words(status, stderr))


def _last_words(status: int, stderr: Tail) -> str:
    hint = "; perhaps the machine ran out of memory" if status == -9 else ""
    words = f": {stderr.text.strip()}" if stderr.total else ""
    return f"the function's process ended without a result, {describe_exit(status)}{hint}{words}"
