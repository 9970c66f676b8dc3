"""A stage for one case: a real scheduler, a network that can fail, and the stranger's process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self, TypeVar

import msgspec

from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import TidemillError
from tidemill.domain.identifiers import RunId, TaskKey, Token
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.gateway.gates import SharedTokens
from tidemill.gateway.security import Tokens
from tidemill.gateway.server import GatewayServer
from tidemill.protocol.codec import encode_scheduler_message
from tidemill.protocol.messages import Hello, Holdings, Outcome, SchedulerMessage
from tidemill.runtime.conformance.proxy import Proxy
from tidemill.runtime.conformance.watching import (
    StreamRecord,
    WatchedDoor,
    encode_with_unknown_fields,
)
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.stores.sqlite.store import SqliteStore

SLOTS = 4
"""What the worker is asked to offer."""

LOOK_SECONDS = 0.02
WAIT_SECONDS = 10.0
WORDS_BYTES_MAX = 500

Seen = TypeVar("Seen")


class CaseFailed(TidemillError):
    """The worker did not do what the case asks for, and what that was."""


class Stage:
    """Everything that one case needs; an async context manager."""

    def __init__(
        self, command: Sequence[str], *, unknown_fields: bool = False, token_works: bool = True
    ) -> None:
        self.clock = SystemClock()
        self.entropy = SystemEntropy()
        self.bus = MemoryBus()
        self.store = SqliteStore(":memory:", self.clock)
        self.scheduler = Scheduler(
            name="conformance",
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            entropy=self.entropy,
            config=SchedulerConfig(),
        )
        self.door = WatchedDoor(self.scheduler, self.clock)
        self.network: Proxy
        self.process: asyncio.subprocess.Process
        self._command = command
        self._encode = encode_with_unknown_fields if unknown_fields else encode_scheduler_message
        self._token_works = token_works
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the stage
        self._exit = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as started:
            started.callback(self._words.close)
            started.push_async_callback(self.store.close)
            await self.store.migrate()
            duties = asyncio.create_task(self.scheduler.run())
            started.push_async_callback(_end, duties)
            token = self.entropy.secret()
            gate = SharedTokens(Tokens([token]))
            gateway = GatewayServer(self.door, "127.0.0.1:0", gate=gate, encode=self._encode)
            await gateway.start()
            started.push_async_callback(gateway.stop, 0)
            self.network = await started.enter_async_context(Proxy(gateway.address))
            self.process = await self._spawn(token if self._token_works else "not-the-token")
            started.push_async_callback(self._kill)
            self._exit = started.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit.aclose()

    async def _spawn(self, token: str) -> asyncio.subprocess.Process:
        settings = {
            "TIDEMILL_ADDRESS": self.network.address,
            "TIDEMILL_TOKEN": token,
            "TIDEMILL_SLOTS": str(SLOTS),
        }
        try:
            return await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, **settings},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self._words,
                stderr=self._words,
                start_new_session=True,
            )
        except OSError as error:
            raise CaseFailed(f"{self._command[0]} cannot be started: {error.strerror}") from error

    async def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()

    # What a case does.

    async def start(self, *tasks: TaskSpec, given: Any = None) -> RunId:
        """Start a run of these tasks."""
        workflow = Workflow(name="conformance", tasks=tasks)
        request = runs.StartRequest(workflow=workflow, input=given or {})
        (started,) = await runs.start(self.store, self.bus, self.entropy, [request])
        return started.run_id

    async def cancel(self, run_id: RunId) -> None:
        """Stop a run."""
        await runs.cancel(self.store, self.bus, "default", run_id)

    def send(self, message: SchedulerMessage) -> None:
        """Let the scheduler say something that it would not say by itself."""
        sessions = self.scheduler.desk.sessions.all()
        if not sessions:
            raise CaseFailed("the stream was lost on the way")
        sessions[0].send(message)

    def terminate(self) -> None:
        """Ask the process to leave."""
        self.process.send_signal(signal.SIGTERM)

    # What a case sees.

    async def until(
        self, look: Callable[[], Seen | None], what: str, seconds: float = WAIT_SECONDS
    ) -> Seen:
        """What `look` sees as soon as it sees something; CaseFailed says that it was not seen."""

        async def now() -> Seen | None:
            return look()

        return await self.until_stored(now, what, seconds)

    async def until_stored(
        self, look: Callable[[], Awaitable[Seen | None]], what: str, seconds: float = WAIT_SECONDS
    ) -> Seen:
        """The same for a look at the store."""
        deadline = self.clock.monotonic() + seconds
        while True:
            seen = await look()
            if seen:
                return seen
            if self.process.returncode is not None:
                raise CaseFailed(f"{what}: the worker ended {self._ending()}")
            if self.clock.monotonic() > deadline:
                raise CaseFailed(f"{what}: not seen within {seconds:g} s")
            await self.clock.sleep(LOOK_SECONDS)

    async def left(self, seconds: float) -> int:
        """The exit status of the process, once it has ended."""
        try:
            async with asyncio.timeout(seconds):
                return await self.process.wait()
        except TimeoutError as error:
            raise CaseFailed(f"the process has not ended within {seconds:g} s") from error

    async def stream(self, number: int = 1, seconds: float = WAIT_SECONDS) -> StreamRecord:
        """The stream of this number, from 1, once the worker has been welcomed on it."""

        def look() -> StreamRecord | None:
            streams = self.door.streams[number - 1 :]
            return streams[0] if streams and streams[0].welcome is not None else None

        what = "connects" if number == 1 else "connects again"
        return await self.until(look, what, seconds)

    async def hello(self) -> Hello:
        """What the worker said first."""
        hello = (await self.stream()).hello
        assert hello is not None, "the scheduler welcomes a Hello only"
        return hello

    async def granted(self, run_id: RunId, count: int = 1) -> list[Token]:
        """The grants of a run, once so many have been sent."""

        def look() -> list[Token] | None:
            tokens = [token for token in self.assigned() if token.run_id == run_id]
            return tokens if len(tokens) >= count else None

        return await self.until(look, f"gets {count} assignments")

    def assigned(self) -> list[Token]:
        """Every grant that was sent, on any stream."""
        return [token for stream in self.door.streams for token in stream.assigned]

    def outcomes(self) -> list[Outcome]:
        """Every outcome that was heard, on any stream."""
        return [outcome for stream in self.door.streams for outcome in stream.outcomes]

    async def holdings(
        self, number: int, wanted: Callable[[Holdings], bool], what: str
    ) -> Holdings:
        """The first Holdings on a stream that is as wanted."""

        def look() -> Holdings | None:
            found = self.door.streams[number - 1].of_kind(Holdings)
            return next((one for one in found if wanted(one)), None)

        return await self.until(look, what)

    async def ended(self, run_id: RunId, seconds: float = WAIT_SECONDS) -> Run:
        """A run that has ended."""

        async def look() -> Run | None:
            run = await self.store.reader.run("default", run_id)
            return run if run.ended_at is not None else None

        return await self.until_stored(look, "the run ends", seconds)

    async def task(self, run_id: RunId, position: int = 0) -> TaskRun:
        """A task as it is stored."""
        (task,) = await self.store.reader.tasks("default", run_id, position - 1, 1)
        return task

    async def result(self, run_id: RunId, position: int = 0) -> Any:
        """A result as it is stored; None for null."""
        key = TaskKey(run_id, position)
        results = await self.store.payloads.results([key])
        return msgspec.json.decode(results[key]) if key in results else None

    def _ending(self) -> str:
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, self._words.tell() - WORDS_BYTES_MAX))
        words = self._words.read().decode("utf-8", "replace").strip()
        last = words.splitlines()[-1] if words else "it said nothing"
        return f"with status {self.process.returncode}: {last}"


async def _end(duties: asyncio.Task[None]) -> None:
    duties.cancel()
    await asyncio.gather(duties, return_exceptions=True)
