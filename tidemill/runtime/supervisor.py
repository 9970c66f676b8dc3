"""Keeps worker processes running, and learns how they ended.

Each worker has a pipe as standard input: when the owner is gone, however it went, the pipe closes
and the worker ends. Workers are process groups of their own, so that Ctrl-C reaches the owner
alone, which then decides. What a worker writes outside of any task is kept, bounded, for the day
it dies unexpectedly.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tidemill.ports.clock import Clock
from tidemill.runtime.offering import hide_settings, worker_environ

log = logging.getLogger(__name__)

TAIL_BYTES = 8_192
HEALTHY_SECONDS = 10.0  # a worker that lived this long is replaced at once
BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_SECONDS_MAX = 5.0
LAST_WORDS_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker process ended although nobody asked it to."""

    name: str
    pid: int
    status: int  # negative: the signal that killed it
    tail: str

    def __str__(self) -> str:
        if self.status < 0:
            return f"worker process {self.pid} was killed by {signal_name(-self.status)}"
        return f"worker process {self.pid} ended with status {self.status}"


def signal_name(number: int) -> str:
    """What a signal is called; a real-time signal has a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Supervisor:
    """Runs `count` copies of a command until stopped. Each process has a name of its own."""

    def __init__(
        self,
        *,
        command: Callable[[str], Sequence[str]],
        name: str,
        count: int,
        clock: Clock,
        on_death: Callable[[WorkerDied], None],
    ) -> None:
        self._command = command
        self._name = name
        self._count = count
        self._spawned = 0
        self._clock = clock
        self._on_death = on_death
        self._running: dict[int, _Worker] = {}
        self._retired: dict[int, _Worker] = {}  # by process id: those that finish what they run
        self._keepers: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    @property
    def pids(self) -> list[int]:
        """The worker processes that run right now."""
        return [worker.process.pid for worker in self._running.values()]

    async def start(self) -> None:
        """Start every worker; return when the processes exist."""
        hide_settings()
        for number in range(1, self._count + 1):
            worker = self._running[number] = await self._spawn()
            self._keepers.append(asyncio.create_task(self._keep(number, worker)))

    @property
    def names(self) -> list[str]:
        """What the processes are called that run right now; a successor has a name of its own."""
        return [worker.name for worker in self._running.values()]

    async def replace_all(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Start a successor for every worker; once they are ready, let the old ones finish."""
        old = dict(self._running)
        for number in range(1, self._count + 1):
            worker = await self._replacement()
            if worker is None:
                return
            before = self._running.get(number)
            if before is not None:
                self._retired[before.process.pid] = before
            self._running[number] = worker
            self._keepers = [keeper for keeper in self._keepers if not keeper.done()]
            self._keepers.append(asyncio.create_task(self._keep(number, worker)))
        await ready()
        for worker in old.values():
            if worker.process.pid in self._retired:
                _send(worker, signal.SIGTERM)

    async def stop(self, grace_seconds: float) -> None:
        """Ask workers to finish, and kill those that have not after the grace; safe to repeat."""
        self._stopping.set()
        self._signal(signal.SIGTERM)
        if self._keepers:
            await asyncio.wait(self._keepers, timeout=grace_seconds)
        await self.kill()

    async def kill(self) -> None:
        """End every worker at once; safe to repeat."""
        self._stopping.set()
        self._signal(signal.SIGKILL)
        await asyncio.gather(*self._keepers)

    def _signal(self, number: signal.Signals) -> None:
        for worker in (*self._running.values(), *self._retired.values()):
            _send(worker, number)

    async def _keep(self, number: int, worker: _Worker) -> None:
        """Replace one worker whenever it dies; one that dies young waits longer each time."""
        delay = 0.0
        while True:
            born = self._clock.monotonic()
            status = await worker.process.wait()
            tail = await worker.close()
            if self._retired.pop(worker.process.pid, None) is not None:
                return
            del self._running[number]
            if self._stopping.is_set():
                return
            self._on_death(WorkerDied(worker.name, worker.process.pid, status, tail))
            delay = _next_delay(delay, lived=self._clock.monotonic() - born)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
                    return
            successor = await self._replacement()
            if successor is None:
                return
            if number in self._running:  # somebody has replaced it meanwhile
                await _end(successor)
                return
            worker = self._running[number] = successor

    async def _replacement(self) -> _Worker | None:
        """A new worker, as soon as the machine lets us have one; None when nobody wants it."""
        while not self._stopping.is_set():
            try:
                worker = await self._spawn()
            except OSError as error:
                log.warning("no worker process can be started: %s", error)
                await self._clock.sleep(BACKOFF_SECONDS_MAX)
                continue
            if not self._stopping.is_set():
                return worker
            await _end(worker)
        return None

    async def _spawn(self) -> _Worker:
        self._spawned += 1
        name = f"{self._name}-{self._spawned}"
        return await _spawn(name, self._command(name))


def _next_delay(delay: float, lived: float) -> float:
    if lived >= HEALTHY_SECONDS:
        return 0.0
    return min(BACKOFF_SECONDS_MAX, max(BACKOFF_FIRST_SECONDS, delay * 2))


@dataclass(frozen=True, slots=True)
class _Worker:
    """A process, the end of the pipe that keeps it alive, and what it says."""

    name: str
    process: asyncio.subprocess.Process
    lifeline: int
    words: asyncio.StreamReader
    listening: asyncio.Task[str]
    transport: asyncio.ReadTransport

    async def close(self) -> str:
        """Let go of the pipes; return the last that the process wrote."""
        os.close(self.lifeline)
        # A grandchild may hold the other end open for as long as it likes.
        await asyncio.wait([self.listening], timeout=LAST_WORDS_SECONDS)
        self.transport.close()
        self.words.feed_eof()
        return await self.listening


def _send(worker: _Worker, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        worker.process.send_signal(number)


async def _end(worker: _Worker) -> None:
    """End a worker that nobody wants."""
    _send(worker, signal.SIGKILL)
    await worker.process.wait()
    await worker.close()


async def _spawn(name: str, command: Sequence[str]) -> _Worker:
    """Start one process. The pipes are our own: asyncio's would delay the news of its death."""
    standard_input, lifeline = os.pipe()
    output, standard_output = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=standard_input,
            stdout=standard_output,
            stderr=standard_output,
            start_new_session=True,
            env=worker_environ(os.environ),
        )
    finally:
        os.close(standard_input)
        os.close(standard_output)
    words = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(words), os.fdopen(output, "rb", buffering=0)
    )
    listening = asyncio.create_task(_listen(words))
    return _Worker(name, process, lifeline, words, listening, transport)


async def _listen(words: asyncio.StreamReader) -> str:
    tail = b""
    while chunk := await words.read(4_096):
        tail = (tail + chunk)[-TAIL_BYTES:]
    return tail.decode("utf-8", "replace").strip()
