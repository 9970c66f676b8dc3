"""Processes started for a task: their output is bounded, and they go when the task goes."""

from __future__ import annotations

import asyncio
import codecs
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tidemill.worker import warden
from tidemill.worker.output import clean_text

KILL_GRACE_SECONDS = 0.7
LINGER_SECONDS = 0.5  # what output gets to arrive once its process is gone
_CHUNK_BYTES = 65_536
_PR_SET_PDEATHSIG = 1
WARDEN_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start. Without `env` the process gets the worker's own environment."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: dict[str, str] | None = None
    cwd: str | None = None
    pass_fds: tuple[int, ...] = ()


class Tail:
    """The last bytes of an output that may be endless."""

    def __init__(self, bytes_max: int) -> None:
        self.data = b""
        self.total = 0
        self._bytes_max = bytes_max

    def add(self, data: bytes) -> None:
        """Append, and forget what is too old."""
        self.total += len(data)
        self.data = (self.data + data)[-self._bytes_max :]

    @property
    def truncated(self) -> bool:
        """Whether something was forgotten."""
        return self.total > len(self.data)

    @property
    def text(self) -> str:
        """What is kept, as text."""
        return clean_text(self.data.decode("utf-8", "replace"))


class Commands:
    """Runs commands, and has whatever runs killed when this process is.

    Not by a function between fork and exec, as is often done: gRPC has threads, and a fork of
    their process that does more than exec can hang. A warden process watches from outside.
    """

    def __init__(self) -> None:
        self._warden: subprocess.Popen[bytes] | None = None
        self._watched: set[int] = set()

    async def run(
        self, command: Command, stdout: Tail, stderr: Tail, write: Callable[[str], None]
    ) -> int:
        """Run to the end and return the status, negative for a signal; OSError if it cannot start.

        Output goes to the tails and, as text, to `write`. When the caller is cancelled, and at the
        end in any case, everything in the process's group is killed.
        """
        async with inlet() as out, inlet() as err:
            process = await self._spawn(command, out, err)
            readers = [
                asyncio.create_task(_read(out.reader, stdout, write)),
                asyncio.create_task(_read(err.reader, stderr, write)),
            ]
            try:
                await process.wait()
                # A grandchild may keep the pipes open; what it writes later is not our output.
                await asyncio.wait(readers, timeout=LINGER_SECONDS)
            finally:
                for reader in readers:
                    reader.cancel()
                await _end(process)
                self._unwatch(process.pid)
        assert process.returncode is not None
        return process.returncode

    def close(self) -> None:
        """Send the warden home, which kills what is still on its list; safe to call twice."""
        watching, self._warden = self._warden, None
        if watching is not None:
            assert watching.stdin is not None
            watching.stdin.close()
            watching.wait(WARDEN_SECONDS)

    async def _spawn(self, command: Command, out: Inlet, err: Inlet) -> asyncio.subprocess.Process:
        self._call_warden()
        # A file as standard input: a process that does not read it holds nobody up.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(command.stdin)
            stdin.seek(0)
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=stdin,
                stdout=out.theirs,
                stderr=err.theirs,
                env=command.env,
                cwd=command.cwd,
                pass_fds=command.pass_fds,
                start_new_session=True,
            )
        self._watch(process.pid)
        out.hand_over()
        err.hand_over()
        return process

    def _watch(self, pid: int) -> None:
        self._watched.add(pid)
        self._tell(b"+%d\n" % pid)

    def _unwatch(self, pid: int) -> None:
        self._watched.discard(pid)
        self._tell(b"-%d\n" % pid)

    def _tell(self, line: bytes) -> None:
        watching = self._call_warden()
        assert watching.stdin is not None
        with suppress(BrokenPipeError):  # the next call finds it dead and hires another
            watching.stdin.write(line)

    def _call_warden(self) -> subprocess.Popen[bytes]:
        if self._warden is None or self._warden.poll() is not None:
            self._warden = subprocess.Popen(  # noqa: S603  (nothing of it comes from a task)
                [sys.executable, "-I", "-S", warden.__file__],
                stdin=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
            for pid in self._watched:
                self._tell(b"+%d\n" % pid)
        return self._warden


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def describe_exit(status: int) -> str:
    """How a process ended, in words: `exit code 3` or `killed by SIGSEGV`."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


@dataclass(slots=True)
class Inlet:
    """Our end of a pipe, and the end that a process writes to."""

    reader: asyncio.StreamReader
    theirs: int | None

    def hand_over(self) -> None:
        """The process has its end: close ours of it, or the pipe would never end."""
        if self.theirs is not None:
            os.close(self.theirs)
            self.theirs = None


@asynccontextmanager
async def inlet(line_bytes_max: int = _CHUNK_BYTES) -> AsyncIterator[Inlet]:
    """A pipe of our own: asyncio's would delay the news of a process's end until all are closed."""
    ours, theirs = os.pipe()
    reader = asyncio.StreamReader(limit=line_bytes_max)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", buffering=0)
    )
    pipe = Inlet(reader, theirs)
    try:
        yield pipe
    finally:
        pipe.hand_over()
        transport.close()


async def _read(stream: asyncio.StreamReader, tail: Tail, write: Callable[[str], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := await stream.read(_CHUNK_BYTES):
        tail.add(data)
        write(decoder.decode(data))


async def _end(process: asyncio.subprocess.Process) -> None:
    try:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            await asyncio.wait_for(process.wait(), KILL_GRACE_SECONDS)
    except TimeoutError:
        """It does not listen."""
    finally:
        # Also when the leader has ended: what it left behind must not outlive the attempt.
        _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
