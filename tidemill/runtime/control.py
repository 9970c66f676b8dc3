"""How a second process asks the owner of a store to change something.

One line of JSON each way over a unix socket that only the same user may open. Reading needs no
owner: stores are read directly.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tidemill.domain.errors import Conflict, NotFound, TidemillError, Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import Run
from tidemill.domain.workflow import Workflow
from tidemill.protocol.messages import ProgressReport

LINE_BYTES_MAX = 16 * 1_048_576  # a definition and its input
ANSWER_SECONDS = 15.0


class CancelRun(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop a run."""

    run_id: RunId


class ReplayTask(msgspec.Struct, frozen=True, tag="replay"):
    """Try a dead letter again."""

    run_id: RunId
    position: int


class StartRun(msgspec.Struct, frozen=True, tag="start"):
    """Start a run; `imports` are the modules that its tasks need."""

    workflow: Workflow
    input: Any
    imports: tuple[str, ...]
    key: str | None


class AskProgress(msgspec.Struct, frozen=True, tag="progress"):
    """How far have the running tasks of a run come?"""

    run_id: RunId


class RunChanged(msgspec.Struct, frozen=True, tag="run"):
    """The run after the change."""

    run: Run


class RunStarted(msgspec.Struct, frozen=True, tag="started"):
    """The run that was started, now or earlier with the same key."""

    run_id: RunId
    created: bool


class ProgressNow(msgspec.Struct, frozen=True, tag="progress"):
    """What workers have said about running tasks."""

    reports: tuple[ProgressReport, ...]


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """The owner would not."""

    kind: str
    message: str


Command: TypeAlias = StartRun | CancelRun | ReplayTask | AskProgress
Answer: TypeAlias = RunStarted | RunChanged | ProgressNow | Refusal
Handler: TypeAlias = Callable[[Command], Awaitable[Answer]]

_commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
_REFUSALS: dict[str, type[TidemillError]] = {
    "NotFound": NotFound,
    "Conflict": Conflict,
    "Unavailable": Unavailable,
}


class ControlServer:
    """The owner's ear."""

    def __init__(self, path: Path, handle: Handler) -> None:
        self._path = path
        self._handle = handle
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen. The folder is private to the user, and so is the socket."""
        self._server = await asyncio.start_unix_server(
            self._serve, str(self._path), limit=LINE_BYTES_MAX
        )
        self._path.chmod(0o600)

    async def stop(self) -> None:
        """Stop listening; safe to call twice."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            line = await asyncio.wait_for(reader.readuntil(b"\n"), ANSWER_SECONDS)
            writer.write(msgspec.json.encode(await self._answer(line)) + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, line: bytes) -> Answer:
        try:
            return await self._handle(_commands.decode(line))
        except TidemillError as error:
            return Refusal(type(error).__name__, str(error))
        except msgspec.DecodeError as error:
            return Refusal("Conflict", f"the owner runs another release of Tidemill: {error}")


async def ask(socket: str, command: Command) -> Answer:
    """Send one command to the owner and return its answer; a refusal is raised."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await _exchange(socket, command)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        why = f": {error}" if str(error) else " in time"
        hint = "it may be stopping: try again"
        raise Unavailable(f"the owner of the store does not answer{why}; {hint}") from error
    if isinstance(answer, Refusal):
        raise _REFUSALS.get(answer.kind, Conflict)(answer.message)
    return answer


async def _exchange(socket: str, command: Command) -> Answer:
    reader, writer = await asyncio.open_unix_connection(socket, limit=LINE_BYTES_MAX)
    try:
        writer.write(msgspec.json.encode(command) + b"\n")
        await writer.drain()
        return _answers.decode(await reader.readuntil(b"\n"))
    finally:
        writer.close()
