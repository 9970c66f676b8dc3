"""Roles apart on a fresh database, and what a test asks of them."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import asyncpg

from tests.chaos.work import MARKS
from tests.deployment import Deployment, RoleProcess
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.domain.task_run import Attempt, TaskRun
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine.runs import StartRequest, cancel, start
from tidemill.ports.bus import Bus
from tidemill.runtime.system import SystemEntropy
from tidemill.runtime.wiring import open_bus
from tidemill.stores.postgres.store import PostgresStore

ERRANDS = Path(__file__).with_name("errands.py")
WAIT_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.02
# Sessions a third as long as by default: these tests wait for their end.
QUICK = ("--session-ttl-seconds", "2", "--ping-seconds", "0.3", "--scan-seconds", "0.2")
QUICK_PINGS = ("--ping-seconds", "0.3")

T = TypeVar("T")
_numbers = count(1)


class Mark(NamedTuple):
    """What a task left when its body began."""

    run_id: str
    position: int
    epoch: int
    attempt: int
    pid: int
    key: str
    at: float


class Cluster:
    """Processes of roles, and a client that starts runs and looks at them."""

    def __init__(self, roles: Deployment, store: PostgresStore, bus: Bus) -> None:
        self.roles = roles
        self.store = store
        self.bus = bus
        self._entropy = SystemEntropy()

    async def scheduler(self, *options: str) -> RoleProcess:
        """One more scheduler, which listens."""
        process = self.roles.add_scheduler(*options)
        process.start()
        await self.until_listening(self.roles.schedulers.index(process))
        return process

    async def worker(self, *options: str, first: int | None = None) -> RoleProcess:
        """One more worker, which has a session."""
        process = self.roles.add_worker("--import", str(ERRANDS), *options, first=first)
        process.start()
        await self.until_connected(process)
        return process

    async def until_listening(self, number: int) -> None:
        """Wait for a scheduler to take connections."""
        host, _, port = self.roles.addresses[number].partition(":")

        def connects() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((host, int(port))) == 0

        await seen(connects)

    async def until_connected(self, worker: RoleProcess, scheduler: str | None = None) -> None:
        """Wait for a worker's latest process to have a session, with this scheduler if given."""
        since = time.time() - worker.age

        async def connected() -> bool:
            return any(
                session.worker == worker.name
                and session.opened_at / 1e6 >= since
                and scheduler in {None, session.scheduler}
                for session in await self.store.reader.sessions("default")
            )

        await seen_async(connected)

    async def begin(self, *tasks: TaskSpec, count: int = 1) -> list[RunId]:
        """Start runs of these tasks."""
        requests = [StartRequest(workflow=Workflow(name="errands", tasks=tasks))] * count
        started = await start(self.store, self.bus, self._entropy, requests)
        return [one.run_id for one in started]

    async def begin_one(self, function: str, **inputs: Any) -> RunId:
        """Start a run of one task."""
        [run_id] = await self.begin(calls(function, **inputs))
        return run_id

    async def cancel(self, run_id: RunId) -> None:
        """Stop a run."""
        await cancel(self.store, self.bus, "default", run_id)

    async def until_ended(self, run_id: RunId, seconds: float = WAIT_SECONDS_MAX) -> Run:
        """Wait for a run to end."""

        async def ended() -> Run | None:
            run = await self.store.reader.run("default", run_id)
            return run if run.state in RUN_ENDED else None

        return await seen_async(ended, seconds)

    async def task(self, run_id: RunId, position: int = 0) -> TaskRun:
        """One task as it is now."""
        return (await self.store.reader.tasks("default", run_id, position - 1, 1))[0]

    async def attempts(self, run_id: RunId, position: int = 0) -> list[Attempt]:
        """The attempts of a task before the latest."""
        return await self.store.reader.attempts("default", TaskKey(run_id, position))

    async def result(self, run_id: RunId, position: int = 0) -> Any:
        """What a task returned."""
        results = await self.store.payloads.results([TaskKey(run_id, position)])
        return json.loads(results[TaskKey(run_id, position)])

    async def marks(self, wanted: int) -> list[Mark]:
        """Wait for so many bodies to have begun; when and where they did."""
        path = self.roles.folder / "marks"

        def read() -> list[Mark] | None:
            lines = path.read_text().splitlines() if path.exists() else []
            return [Mark(*json.loads(line)) for line in lines] if len(lines) >= wanted else None

        return await seen(read)

    def worker_of(self, mark: Mark) -> RoleProcess:
        """The worker that runs a body."""
        return next(worker for worker in self.roles.workers if worker.pid == mark.pid)


@asynccontextmanager
async def a_cluster(
    dsn: str, folder: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Cluster]:
    """An empty cluster on a fresh database."""
    url = await fresh_database(dsn)
    marks = {MARKS: str(folder / "marks"), **(environment or {})}
    store, bus = PostgresStore(url), open_bus(url)
    try:
        with Deployment(folder, url, url, environment=marks) as roles:
            await store.migrate()
            yield Cluster(roles, store, bus)
    finally:
        await bus.close()
        await store.close()


async def ask(cluster: Cluster, query: str) -> list[object]:
    """The first column of whatever the database answers."""
    connection = await asyncpg.connect(cluster.roles.store)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def relayed(cluster: Cluster) -> bool:
    """Whether every row of the outbox has been published."""
    left = "SELECT count(*) FROM outbox WHERE position IS NULL"
    behind = """
        SELECT (SELECT coalesce(max(position), 0) FROM outbox) - coalesce(max(position), 0)
        FROM outbox_cursor WHERE name = 'bus'
    """
    return await ask(cluster, left) == [0] and await ask(cluster, behind) == [0]


async def fresh_database(dsn: str) -> str:
    """The address of a new, empty database."""
    name = f"cluster_{next(_numbers)}"
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return dsn.replace("/postgres?", f"/{name}?")


def calls(function: str, name: str = "errand", **inputs: Any) -> TaskSpec:
    """A task that calls one of the errands; `params`, `retry` and the like are the task's own."""
    own = {key: inputs.pop(key) for key in list(inputs) if key in TaskSpec.__struct_fields__}
    params = {"function": f"errands:{function}", **own.pop("params", {})}
    return TaskSpec(id=name, executor="python", params=params, inputs=inputs, **own)


async def seen(look: Callable[[], T | None], seconds: float = WAIT_SECONDS_MAX) -> T:
    """What `look` sees as soon as it sees something: processes offer no signal to await."""

    async def once() -> T | None:
        return look()

    return await seen_async(once, seconds)


async def seen_async(
    look: Callable[[], Awaitable[T | None]], seconds: float = WAIT_SECONDS_MAX
) -> T:
    """The same where looking takes time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := await look():
            return found
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError(f"nothing was seen within {seconds:g} s")
