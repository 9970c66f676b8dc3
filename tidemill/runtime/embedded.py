"""Everything on one machine: one process that decides, and worker processes that run user code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Self

from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Conflict, StoreOwned, TidemillError, Unavailable
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.plan import encode_workflow, version_of
from tidemill.domain.run import Run
from tidemill.domain.workflow import Workflow
from tidemill.engine import dead_letters, runs
from tidemill.gateway.server import GatewayServer
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.ports.store import Store
from tidemill.protocol.messages import ProgressReport
from tidemill.runtime.config import EmbeddedSettings, unserved
from tidemill.runtime.control import (
    Answer,
    AskProgress,
    CancelRun,
    Command,
    ControlServer,
    ProgressNow,
    ReplayTask,
    RunChanged,
)
from tidemill.runtime.exit_status import UNUSABLE, WORN_OUT
from tidemill.runtime.inspection import read_plan
from tidemill.runtime.leftovers import sort_out, take_up
from tidemill.runtime.owner import OwnerCard, Ownership, private_folder, take_ownership
from tidemill.runtime.sources import Sources
from tidemill.runtime.supervisor import Supervisor, WorkerDied
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.wiring import check_place, open_store
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler

WORKER_START_SECONDS = 20.0
WORKER_POLL_SECONDS = 0.02
GOODBYE_SECONDS = 0.5
LAST_WORDS_CHARACTERS = 500
OWNER_TRIES_MAX = 10
OWNER_RETRY_SECONDS = 0.03
HANDING_BACK_SECONDS = 8.0
"""What a worker gets after the grace to stop what still runs and to hand it back."""

BURIALS_MAX = 100
EXCLUSIVE_OWNER = "owner"


class WorkerUnusable(TidemillError):
    """Worker processes cannot start, and why."""


class Embedded:
    """Owner, store, scheduler, relay, gateway and workers; an async context manager.

    Runs that an earlier owner left are put aside, except those to `resume`.
    """

    def __init__(
        self,
        settings: EmbeddedSettings,
        *,
        resume: Collection[RunId] = (),
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.entropy = SystemEntropy()
        self.bus = MemoryBus()
        self.left: list[Run] = []
        self.active: set[RunId] = set(resume)  # what this process was asked to bring to an end
        self.store: Store
        self._resume = frozenset(resume)
        self._notify = notify
        self._sources = Sources(settings.store)
        self._scheduler: Scheduler
        self._supervisor: Supervisor
        self._unusable: str | None = None
        self._duties: list[asyncio.Task[None]] = []
        self._burials: deque[asyncio.Task[None]] = deque(maxlen=BURIALS_MAX)
        self._exit = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._exit.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit.aclose()

    @property
    def worker_pids(self) -> list[int]:
        """The worker processes that run right now."""
        return self._supervisor.pids

    async def start(self, workflow: Workflow, value: Any) -> RunId:
        """Start a new run, and remember which modules its workers need."""
        request = runs.StartRequest(workflow=workflow, input=value)
        version = version_of(request.namespace, encode_workflow(workflow))
        self._sources.remember(version, self.settings.imports)
        [started] = await runs.start(self.store, self.bus, self.entropy, [request])
        self.active.add(started.run_id)
        return started.run_id

    async def cancel(self, run_id: RunId) -> Run:
        """Stop a run, also one that was put aside."""
        await take_up(self.store, [await self.store.reader.run(run_id)])
        self.active.add(run_id)
        return await runs.cancel(self.store, self.bus, run_id)

    async def replay(self, key: TaskKey) -> Run:
        """Try a dead letter again; Conflict when these workers cannot serve its run."""
        run = await self.store.reader.run(key.run_id)
        missing = set(self._sources.recall([run.version_id])) - set(self.settings.imports)
        missing |= unserved(self.settings, (await read_plan(self.store, run)).workflow)
        if missing:
            raise Conflict(
                f"process {os.getpid()} runs another workflow, without "
                f"{', '.join(sorted(missing))}: replay the task when it has ended"
            )
        after = await dead_letters.replay(self.store, self.bus, key)
        self.active.add(key.run_id)
        return after

    def progress(self, run_id: RunId) -> tuple[ProgressReport, ...]:
        """What workers last said about the running tasks of a run."""
        reports = self._scheduler.progress()
        return tuple(report for key, report in reports.items() if key.run_id == run_id)

    async def workers_ready(self) -> None:
        """Wait for the first worker; WorkerUnusable when none can start."""
        deadline = self.clock.monotonic() + WORKER_START_SECONDS
        while self.clock.monotonic() < deadline:
            self.check()
            if await self.store.reader.sessions():
                return
            await self.clock.sleep(WORKER_POLL_SECONDS)
        raise WorkerUnusable(f"no worker has connected within {WORKER_START_SECONDS:g} s")

    def check(self) -> None:
        """Raise what made a part of the system end, if one has."""
        if self._unusable is not None:
            raise WorkerUnusable(f"the worker cannot start: {self._unusable}")
        for duty in self._duties:
            if duty.done() and not duty.cancelled() and (error := duty.exception()) is not None:
                raise error

    async def drain(self) -> None:
        """Take no new work; let running tasks finish within the grace, hand the rest back."""
        self._scheduler.drain()
        await self._supervisor.stop(self.settings.grace_seconds + HANDING_BACK_SECONDS)

    async def kill(self) -> None:
        """End the workers at once. What they ran is run again by the next owner."""
        await self._supervisor.kill()

    async def _start(self) -> None:
        address = self.settings.store
        folder = private_folder()
        self._exit.callback(shutil.rmtree, folder, ignore_errors=True)
        ownership = None
        if address.path is not None:
            check_place(address.path, make=True)
            ownership = await self._become_owner(address.path)
            self._exit.callback(ownership.release)
        self.store = await open_store(address, self.clock)
        self._exit.push_async_callback(self.store.close)
        await self.store.migrate()
        if ownership is not None:
            await self._inherit()
        await self._start_roles(folder)
        if ownership is not None:
            control = ControlServer(folder / "control.sock", self._obey)
            await control.start()
            self._exit.push_async_callback(control.stop)
            ownership.introduce(
                OwnerCard(
                    pid=os.getpid(),
                    socket=str(folder / "control.sock"),
                    started_at=self.clock.now(),
                )
            )

    async def _become_owner(self, path: Path) -> Ownership:
        for _ in range(OWNER_TRIES_MAX - 1):
            try:
                return take_ownership(path)
            except StoreOwned as error:
                if error.pid:
                    raise
            # Nobody by name: somebody who just looks, or who comes or goes right now.
            await self.clock.sleep(OWNER_RETRY_SECONDS)
        return take_ownership(path)

    async def _inherit(self) -> None:
        """The only owner there can be: no session of an earlier one is worth waiting for."""
        async with self.store.transaction() as tx:
            await tx.sessions.close_all()
        self.left = await sort_out(self.store, self._resume)

    async def _start_roles(self, folder: Path) -> None:
        name = f"{socket.gethostname()}-{os.getpid()}"
        self._scheduler = Scheduler(
            name=name,
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            entropy=self.entropy,
            config=SchedulerConfig(),
        )
        self._start_relay(name)
        self._exit.push_async_callback(self._scheduler.close)
        self._run(self._scheduler.run())
        address = f"unix:{folder / 'worker.sock'}"
        gateway = GatewayServer(self._scheduler, address)
        await gateway.start()
        self._exit.push_async_callback(gateway.stop, GOODBYE_SECONDS)
        self._supervisor = Supervisor(
            command=partial(self.settings.worker_command, address),
            name=f"{name}-worker",
            count=self.settings.workers,
            clock=self.clock,
            on_death=self._mourn,
        )
        self._exit.push_async_callback(self.drain)
        await self._supervisor.start()

    def _start_relay(self, name: str) -> None:
        # The only owner there can be need not wait for the lead of an earlier one to expire.
        holder = name if self.settings.store.path is None else EXCLUSIVE_OWNER
        relay = Relay(
            name=holder, store=self.store, bus=self.bus, clock=self.clock, config=RelayConfig()
        )

        async def resign() -> None:
            with contextlib.suppress(Unavailable):
                await relay.resign()

        self._exit.push_async_callback(resign)
        self._run(relay.run())

    def _run(self, duty: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(duty)
        self._duties.append(task)

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._exit.push_async_callback(end)

    def _mourn(self, death: WorkerDied) -> None:
        self._burials.append(asyncio.create_task(self._bury(death)))

    async def _bury(self, death: WorkerDied) -> None:
        """The process is gone for sure: its tasks need not wait for its session to expire."""
        found = [one.id for one in await self.store.reader.sessions() if one.worker == death.name]
        if death.status in UNUSABLE and not found:
            # Without a session it was not user code that ended it. Nobody typed --import for what
            # a workflow or an earlier run brings along.
            self._unusable = death.tail.removeprefix("--import ") or "it gave no reason"
            return
        why = f" ({death.tail[-LAST_WORDS_CHARACTERS:]})" if death.status == WORN_OUT else ""
        self._notify(f"{death}{why}; a new one takes its place")
        async with self.store.transaction() as tx:
            await tx.sessions.close(found)

    async def _obey(self, command: Command) -> Answer:
        match command:
            case CancelRun(run_id):
                return RunChanged(await self.cancel(run_id))
            case ReplayTask(run_id, position):
                return RunChanged(await self.replay(TaskKey(run_id, position)))
            case AskProgress(run_id):
                return ProgressNow(self.progress(run_id))
