"""A function in a process of its own: `python -m tidemill.worker.child`, started by the worker.

The request comes on standard input; what the function says and returns goes out line by line over
a pipe of its own, so that nothing it prints can be taken for a result. The child ends when the
worker does: by the kernel on Linux, and everywhere by a second pipe whose end it waits for.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from tidemill.domain.identifiers import RunId, Token
from tidemill.domain.masking import Masking
from tidemill.sdk.context import Context, ContextHandler, enter_context
from tidemill.sdk.secrets import Secrets, SecretSources
from tidemill.sdk.typed_values import Arguments
from tidemill.worker.capture import log_to_tasks
from tidemill.worker.failures import TaskFailure, failure_of
from tidemill.worker.library import load_library
from tidemill.worker.processes import die_with_parent
from tidemill.worker.results import encode_result


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to call, and as part of which attempt."""

    function: str
    inputs: dict[str, Any]
    imports: tuple[str, ...]
    run_id: str
    position: int
    epoch: int
    workflow: str
    task: str
    attempt: int
    result_bytes_max: int
    secrets: SecretSources


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """The function is alive."""


class Step(msgspec.Struct, frozen=True, tag="step"):
    """The function has come this far."""

    fraction: float
    message: str


class Returned(msgspec.Struct, frozen=True, tag="returned"):
    """The function's result, as JSON; null when it returned None."""

    result: msgspec.Raw


class Raised(msgspec.Struct, frozen=True, kw_only=True, tag="raised"):
    """What the function raised instead of returning."""

    kind: str
    message: str
    traceback: str
    final: bool
    retry_after_seconds: float | None


Line: TypeAlias = Beat | Step | Returned | Raised


class PipeVoice:
    """The voice of a task in a child: lines to the worker, and what it prints to its stdout."""

    cancelled = False  # a child is not asked to stop, it is killed

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, line: Line) -> None:
        """Write one line, whole, whichever threads speak at once."""
        data = msgspec.json.encode(line) + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._descriptor, data) :]

    def heartbeat(self) -> None:
        """Pass it on."""
        self.say(Beat())

    def progress(self, fraction: float, message: str) -> None:
        """Pass it on."""
        self.say(Step(fraction, message))

    def write(self, text: str) -> None:
        """Log lines share the child's standard error."""
        sys.stderr.write(text)


def main(arguments: list[str]) -> None:
    """Serve one request, then end without waiting for whatever the function has left running."""
    die_with_parent()
    voice_descriptor, lifeline = map(int, arguments)
    os.set_inheritable(voice_descriptor, False)
    os.set_inheritable(lifeline, False)
    threading.Thread(target=_end_with_worker, args=(lifeline,), daemon=True).start()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    voice = PipeVoice(voice_descriptor)
    log_to_tasks(ContextHandler())
    voice.say(_serve(request, voice))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with_worker(lifeline: int) -> None:
    os.read(lifeline, 1)  # returns when the worker's end is closed, however it ended
    os._exit(1)


def _serve(request: Request, voice: PipeVoice) -> Returned | Raised:
    try:
        result = encode_result(_call(request, voice), request.result_bytes_max)
        return Returned(msgspec.Raw(result or b"null"))
    except BaseException as error:  # noqa: BLE001  (SystemExit in user code is a failed attempt)
        failed = failure_of(error, request.epoch, Masking(request.secrets.values()).mask)
        return Raised(
            kind=failed.error.type,
            message=failed.error.message,
            traceback=failed.error.traceback,
            final=failed.final,
            retry_after_seconds=failed.retry_after_seconds,
        )


def _call(request: Request, voice: PipeVoice) -> Any:
    function = load_library(request.imports).find(request.function)
    token = Token(RunId(request.run_id), request.position, request.epoch)
    enter_context(
        Context(
            token=token,
            workflow=request.workflow,
            task=request.task,
            attempt=request.attempt,
            voice=voice,
            secrets=Secrets(request.secrets),
        )
    )
    value = function(**_arguments(function, request.inputs))
    return asyncio.run(_wait_for(value)) if inspect.isawaitable(value) else value


def _arguments(function: Callable[..., Any], inputs: dict[str, Any]) -> dict[str, Any]:
    try:
        return Arguments(function).of(inputs)
    except ValueError as error:
        raise TaskFailure("InvalidInputs", str(error), final=True) from None


async def _wait_for(value: Any) -> Any:
    return await value


if __name__ == "__main__":
    main(sys.argv[1:])
