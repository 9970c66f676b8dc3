"""Everything on one machine: one process that decides, and worker processes that run user code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from tidemill.domain.errors import Conflict, StoreOwned, TidemillError, Unavailable
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.plan import Plan, compile_plan, encode_workflow, version_of
from tidemill.domain.run import Run
from tidemill.domain.task_run import ENDED
from tidemill.domain.workflow import Workflow
from tidemill.engine import dead_letters, runs
from tidemill.ports.store import Store
from tidemill.protocol.messages import ProgressReport
from tidemill.runtime.addresses import parse_endpoint
from tidemill.runtime.exit_status import UNUSABLE, WORN_OUT
from tidemill.runtime.guarding import is_asked_who_calls
from tidemill.runtime.inspection import read_plan, read_tasks
from tidemill.runtime.leftovers import sort_out, take_up, unfinished_runs
from tidemill.runtime.listening import listen_tcp
from tidemill.runtime.offering import unoffered, unserved, worker_command
from tidemill.runtime.owner import OwnerCard, Ownership, private_folder, take_ownership
from tidemill.runtime.parts import Parts
from tidemill.runtime.settings import Settings
from tidemill.runtime.sources import Sources
from tidemill.runtime.standing import Standing
from tidemill.runtime.supervisor import Supervisor, WorkerDied
from tidemill.runtime.tuning import settled_in
from tidemill.runtime.wiring import check_place
from tidemill.scheduler.service import Scheduler
from tidemill.scheduler.sessions import AttachedSession

WORKER_START_SECONDS = 20.0
WORKER_POLL_SECONDS = 0.02
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

    Runs that an earlier owner left are put aside, except those to `resume`; None resumes all.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        resume: Collection[RunId] | None = (),
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.parts = Parts(settings, notify)
        self.clock, self.entropy = self.parts.clock, self.parts.entropy
        self.bus = self.parts.bus
        self.left: list[Run] = []
        self.listens_on: str | None = None  # for workers of other machines
        self.http: str | None = None  # the base URL of the API, where it is served by TCP
        self.standing = Standing("up" if resume is None else "run", self.parts)
        self.active: set[RunId] = set(resume or ())  # what it was asked to bring to an end
        self._resume = resume
        self._notify = notify
        self._sources = Sources(settings.store)
        self._scheduler: Scheduler
        self._supervisor: Supervisor
        self._workers = f"{self.parts.name}-worker"  # how their names begin
        self._unusable: str | None = None
        self._burials: deque[asyncio.Task[None]] = deque(maxlen=BURIALS_MAX)

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.parts.exit.aclose()
            raise
        self.parts.exit.enter_context(settled_in())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.parts.exit.aclose()

    @property
    def store(self) -> Store:
        """The store, once the system has started."""
        return self.parts.store

    @property
    def worker_pids(self) -> list[int]:
        """The worker processes that run right now."""
        return self._supervisor.pids

    async def start(
        self, workflow: Workflow, value: Any, key: str | None = None, imports: Sequence[str] = ()
    ) -> runs.Started:
        """Start a new run, and remember which modules its workers need."""
        request = runs.StartRequest(workflow=workflow, input=value, key=key)
        version = version_of(request.namespace, encode_workflow(workflow))
        if self._resume is not None:
            self._refuse_unoffered(compile_plan(version, workflow), set())
        self._sources.remember(version, dict.fromkeys((*imports, *self.settings.imports)))
        [started] = await runs.start(self.store, self.bus, self.entropy, [request])
        if self._resume is not None:
            self.active.add(started.run_id)
        return started

    async def steer(self, run: Run, again: bool) -> None:
        """Before somebody changes a stored run: one that was put aside is taken up.

        `again` when its tasks will run again; Conflict when these workers cannot serve them.
        """
        if again:
            workflow = (await read_plan(self.store, run)).workflow
            self._refuse_unserved(workflow, self._sources.recall([run.version_id]))
        await take_up(self.store, [run])
        self._note(run)

    async def replay(self, key: TaskKey) -> Run:
        """Try a dead letter again; Conflict when these workers cannot serve its run."""
        await self.steer(await self.store.reader.run("default", key.run_id), again=True)
        return await dead_letters.replay(self.store, self.bus, "default", key)

    def progress(self, run_id: RunId) -> tuple[ProgressReport, ...]:
        """What workers last said about the running tasks of a run."""
        reports = self._scheduler.progress()
        return tuple(report for key, report in reports.items() if key.run_id == run_id)

    async def workers_ready(self) -> None:
        """Wait for the first worker; WorkerUnusable when none can start."""
        deadline = self.clock.monotonic() + WORKER_START_SECONDS
        while self.clock.monotonic() < deadline:
            self.check()
            if self._own_sessions():
                return await self._refuse_waiting_for_ever()
            await self.clock.sleep(WORKER_POLL_SECONDS)
        raise WorkerUnusable(f"no worker has connected within {WORKER_START_SECONDS:g} s")

    async def replace_workers(self) -> None:
        """Let new worker processes take over from the old ones, which finish what they run."""
        await self._supervisor.replace_all(self._connected)

    async def _connected(self) -> None:
        """Wait for every worker to say hello, or for whoever took its place, within limits."""
        deadline = self.clock.monotonic() + WORKER_START_SECONDS
        while self.clock.monotonic() < deadline:
            names = set(self._supervisor.names)
            if len(names) == self.settings.workers and names <= self._greeted():
                return
            await self.clock.sleep(WORKER_POLL_SECONDS)

    def _greeted(self) -> set[str]:
        return {one.worker for one in self._own_sessions()}

    def check(self) -> None:
        """Raise what made a part of the system end, if one has."""
        if self._unusable is not None:
            raise WorkerUnusable(f"the worker cannot start: {self._unusable}")
        self.parts.check()

    async def drain(self) -> None:
        """Take no new work; let running tasks finish within the grace, hand the rest back."""
        self._scheduler.drain()
        await self._supervisor.stop(self.settings.grace + HANDING_BACK_SECONDS)

    async def kill(self) -> None:
        """End the workers at once. What they ran is run again by the next owner."""
        await self._supervisor.kill()

    async def _start(self) -> None:
        address, exits = self.settings.store, self.parts.exit
        listener = None
        if self.settings.listen is not None:  # first, so that nothing has begun if it is taken
            listener = listen_tcp(parse_endpoint(self.settings.listen))
            exits.callback(listener.close)
        folder = private_folder()
        exits.callback(shutil.rmtree, folder, ignore_errors=True)
        ownership = None
        if address.path is not None:
            check_place(address.path, make=True)
            ownership = await self._become_owner(address.path)
            exits.callback(ownership.release)
        await self.parts.open_store()
        await self.store.migrate()
        if ownership is not None:
            await self._inherit()
        await self._start_roles(folder)
        if listener is not None or ownership is not None:
            await self._serve(listener, ownership, folder)

    async def _serve(
        self, listener: socket.socket | None, ownership: Ownership | None, folder: Path
    ) -> None:
        from tidemill.runtime.front import Front  # while the workers start, not before

        front = Front(self.parts, self.standing.look)
        front.services.steer = self.steer
        if listener is not None:
            self.http = await front.serve_tcp(listener)
        if ownership is not None:
            await front.serve_unix(folder / "http.sock")
            ownership.introduce(
                OwnerCard(
                    pid=os.getpid(),
                    started_at=self.clock.now(),
                    http=self.http,
                    http_socket=str(folder / "http.sock"),
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
        if self._resume is None:
            await take_up(self.store, await unfinished_runs(self.store))
        else:
            self.left = await sort_out(self.store, self._resume)

    async def _start_roles(self, folder: Path) -> None:
        # The only owner there can be need not wait for the lead of an earlier one to expire.
        self.parts.start_relay(EXCLUSIVE_OWNER if self.settings.store.path is not None else None)
        if self._resume is None and is_asked_who_calls(self.settings):
            await self.parts.open_identity()
        self._scheduler = self.parts.start_scheduler()
        address = f"unix:{folder / 'worker.sock'}"
        await self.parts.open_gateway(address, guarded=False)
        if self.settings.listen_workers is not None:
            gateway = await self.parts.open_gateway(self.settings.listen_workers, guarded=True)
            self.listens_on = gateway.address
        self._supervisor = Supervisor(
            command=partial(worker_command, self.settings, address),
            name=self._workers,
            count=self.settings.workers,
            clock=self.clock,
            on_death=self._mourn,
        )
        self.parts.exit.push_async_callback(self.drain)
        await self._supervisor.start()

    def _mourn(self, death: WorkerDied) -> None:
        async def bury() -> None:
            with contextlib.suppress(Unavailable):  # then its session expires
                await self._bury(death)

        self._burials.append(asyncio.create_task(bury()))

    async def _bury(self, death: WorkerDied) -> None:
        """The process is gone for sure: its tasks need not wait for its session to expire."""
        found = [
            one.id
            for one in await self.store.reader.sessions("default")
            if one.worker == death.name
        ]
        if death.status in UNUSABLE and not found:
            # Without a session it was not user code that ended it. Nobody typed --import for what
            # a workflow or an earlier run brings along.
            why = death.tail.removeprefix("--import ") or "it gave no reason"
            self._notify(f"{death}: {why}")
            if not self.settings.reload:  # else somebody is about to mend it
                self._unusable = why
            return
        why = f" ({death.tail[-LAST_WORDS_CHARACTERS:]})" if death.status == WORN_OUT else ""
        self._notify(f"{death}{why}; a new one takes its place")
        async with self.store.transaction() as tx:
            await tx.sessions.close(found)

    def _refuse_unserved(self, workflow: Workflow, imports: Sequence[str]) -> None:
        """Conflict, in a process that ends with its runs, when its workers can never serve this.

        One that goes on serving lets tasks wait for whoever offers them.
        """
        if self._resume is None or not self.settings.workers:
            return
        missing = set(imports) - set(self.settings.imports) | unserved(self.settings, workflow)
        if missing:
            names = ", ".join(sorted(missing))
            fix = "it runs another workflow, try again when that has ended"
            raise Conflict(f"process {os.getpid()} has workers without {names}: {fix}")

    def _own_sessions(self) -> list[AttachedSession]:
        sessions = self._scheduler.desk.sessions.all()
        return [one for one in sessions if one.worker.startswith(self._workers)]

    async def _refuse_waiting_for_ever(self) -> None:
        """Conflict when a run to be brought to its end would wait for a worker that never comes."""
        for run_id in sorted(self.active):
            run = await self.store.reader.run("default", run_id)
            ended = {one.node for one in await read_tasks(self.store, run) if one.state in ENDED}
            self._refuse_unoffered(await read_plan(self.store, run), ended)

    def _refuse_unoffered(self, plan: Plan, ended: set[int]) -> None:
        routes = [node.route for node in plan.nodes if node.index not in ended]
        reason = unoffered(routes, self._own_sessions())
        if reason is not None:
            raise Conflict(f"workflow {plan.workflow.name} would wait for ever: {reason}")

    def _note(self, run: Run) -> None:
        """Remember a run to see to its end; who resumes everything sees to all of them."""
        if self._resume is not None and run.namespace == "default":
            self.active.add(run.id)
