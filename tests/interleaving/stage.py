"""The stage: a schema whose rows can be put back, and the parts of a mill that play on it.

What is given is made by real operations once, kept beside the tables, and copied back before each
order: the same ids, epochs and numbers every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from unittest.mock import patch

import asyncpg

from tests.interleaving.gate import GatedConnection
from tests.patience import patient_connections
from tests.roles.mill import SeededEntropy
from tidemill.buses.memory import MemoryBus
from tidemill.domain.events import Failed
from tidemill.domain.identifiers import Lane, RunId, SessionId, Token
from tidemill.domain.routes import fold_route
from tidemill.domain.task_run import TaskError
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.ports.bus import Event
from tidemill.ports.store import ReadyLane
from tidemill.protocol.messages import Hello
from tidemill.runtime.system import SystemClock
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.handover import Arrival, Handovers
from tidemill.scheduler.inbox import Inbox, Item, TaskItem
from tidemill.scheduler.service import Scheduler
from tidemill.scheduler.sessions import AttachedSession
from tidemill.stores.postgres.store import LazyPool, PostgresStore

CONNECTIONS = 4
ITEMS_MAX = 1_000
FOREVER_SECONDS = 86_400.0
TABLES = (
    "workflow_version",
    "run",
    "task",
    "attempt",
    "task_result",
    "session",
    "start_key",
    "outbox",
    "outbox_cursor",
    "leader",
)
WAITING = ReadyLane(Lane("default", fold_route("default", {}, "noop"), -1), alone=False)

MILL = Workflow(
    name="mill",
    tasks=(
        TaskSpec(id="x", executor="noop"),
        TaskSpec(id="y", executor="noop"),
        TaskSpec(id="dead", executor="noop"),
        TaskSpec(id="below", executor="noop", depends_on=("dead",)),
        TaskSpec(id="join", executor="noop", depends_on=("x", "y")),
        TaskSpec(id="waiting", executor="noop", priority=-1),
    ),
)
PAIR = Workflow(
    name="pair",
    tasks=(TaskSpec(id="p", executor="noop"), TaskSpec(id="q", executor="noop")),
)
_schemas = count(1)


class QuickClock(SystemClock):
    """Real time, but nobody waits: pauses between tries would only make the search slow."""

    async def sleep(self, seconds: float) -> None:
        """Let others have a word."""
        await asyncio.sleep(0)


class RecordingBus(MemoryBus):
    """Remembers what was published, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []

    async def publish(self, events: Sequence[Event]) -> None:
        """Remember."""
        self.events += events


class NothingLeft(Exception):
    """No item waits for patient turns any more."""


class EndingInbox(Inbox):
    """Ends the loop of patient turns instead of waiting for more."""

    async def take_patient(self) -> list[Item]:
        """The items of one run."""
        if not self._patient:
            raise NothingLeft
        return await super().take_patient()


class Stage:
    """Two runs, two workers, and whoever is to act on them.

    Of run `mill`, x and y are granted to the worker `left`, `dead` has failed for good with
    `below` beneath it, `join` waits for x and y, and `waiting` is READY. Of run `pair`, p and q are
    granted to `left`: they are its last two tasks. The worker `right` is idle.
    """

    def __init__(self, store: PostgresStore, observer: asyncpg.Connection[asyncpg.Record]) -> None:
        self.store = store
        self.observer = observer
        self.clock = QuickClock()
        self.entropy = SeededEntropy()
        self.bus = RecordingBus()
        self.mill = RunId("")
        self.pair = RunId("")
        self.left = _hello("left")
        self.right = _hello("right")
        self._plans_of = self.scheduler("setter")

    # Parts

    def scheduler(self, name: str, *sessions: AttachedSession) -> Scheduler:
        """A scheduler whose duties do not run, with these workers attached."""
        scheduler = Scheduler(
            name=name,
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            entropy=self.entropy,
            config=SchedulerConfig(),
        )
        scheduler.desk.inbox = EndingInbox(ITEMS_MAX)
        for session in sessions:
            scheduler.desk.sessions.add(session)
        if self.mill:
            plans = scheduler.desk.plans = self._plans_of.desk.plans
            scheduler._turns._means = scheduler._turns._means._replace(plans=plans)
            scheduler._door._handovers = self.handovers()
        return scheduler

    def handovers(self) -> Handovers:
        """What carries arrivals and departures out."""
        return Handovers(self._plans_of.desk.plans, self.entropy.fraction, 1_000)

    def token(self, task: str, epoch: int = 1) -> Token:
        """The token of a task of either run."""
        if task in "pq":
            return Token(self.pair, "pq".index(task), epoch)
        return Token(self.mill, [spec.id for spec in MILL.tasks].index(task), epoch)

    def attached(self, hello: Hello) -> AttachedSession:
        """A worker as a scheduler sees it that has counted its grants."""
        session = AttachedSession(SessionId(hello.worker), hello, 100)
        if hello is self.left:
            for task in "xypq":
                session.grant(self.token(task), 0.0)
        return session

    # Set up

    async def set_up(self) -> None:
        """Make what is given, by real operations, and keep a copy of it."""
        for hello in (self.left, self.right):
            await self.arrive(hello)
        self.mill, self.pair = await self._start(MILL, "first"), await self._start(PAIR, None)
        session = AttachedSession(SessionId("left"), self.left, 100)
        setter = self._plans_of
        setter.desk.sessions.add(session)
        await setter.desk.look()
        await self.take_turns(setter, [])
        error = TaskError(type="Boom", message="it broke")
        token = self.token("dead")
        setter.drain()
        failed = Failed(epoch=1, error=error, final=True)
        await self.take_turns(setter, [TaskItem(token=token, event=failed)])
        assert set(session.granted) == {self.token(task) for task in ("x", "y", "dead", "p", "q")}
        await self._keep()

    async def arrive(self, hello: Hello) -> None:
        """Open the session of a worker, under its own name."""
        arrival = Arrival(
            hello=hello,
            session_id=SessionId(hello.worker),
            secret="secret",
            scheduler="setter",
            ttl_seconds=FOREVER_SECONDS,
        )
        await self.handovers().arrive(self.store, arrival)

    async def take_turns(self, scheduler: Scheduler, items: Iterable[Item]) -> None:
        """Turns until the items are done with, as the two loops of a scheduler take them."""
        inbox, turns = scheduler.desk.inbox, scheduler._turns
        inbox.put_own(items)
        await turns._take_turn(inbox.take(ITEMS_MAX))
        while len(inbox):
            with suppress(NothingLeft):
                await turns.run_patiently()
            while batch := inbox.take(ITEMS_MAX):
                await turns._take_turn(batch)

    async def _start(self, workflow: Workflow, key: str | None) -> RunId:
        request = runs.StartRequest(workflow=workflow, key=key)
        (started,) = await runs.start(self.store, self.bus, self.entropy, [request])
        return started.run_id

    async def _keep(self) -> None:
        for table in TABLES:
            await self.observer.execute(f"CREATE TABLE given_{table} AS TABLE {table}")
        self._put_back = ";".join(
            f"DELETE FROM {table};INSERT INTO {table} OVERRIDING SYSTEM VALUE TABLE given_{table}"
            for table in TABLES
        )

    async def put_back(self, *, expired: bool, stopping: bool) -> None:
        """Begin again with what is given: the time of `left` over or not, `mill` stopped or not."""
        await self.observer.execute(self._put_back)
        if expired:
            await self.observer.execute("UPDATE session SET expires_at = 0 WHERE id = 'left'")
        if stopping:
            await self.observer.execute("UPDATE run SET stop = 'cancelled' WHERE workflow = 'mill'")
        self.bus = RecordingBus()


def _hello(worker: str) -> Hello:
    return Hello(worker=worker, slots=5)


@asynccontextmanager
async def staged(dsn: str) -> AsyncIterator[Stage]:
    """A stage in a schema of its own."""
    schema = f"interleaving_{next(_schemas)}"
    store = PostgresStore(dsn, schema=schema)
    store._renewals = LazyPool(dsn, CONNECTIONS, schema)  # two schedulers would have one each
    gated = partial(asyncpg.create_pool, connection_class=GatedConnection)
    with patch("asyncpg.create_pool", gated), patient_connections():
        pools = [await store._pool.get(), await store._renewals.get()]
    await store.migrate()
    for pool in pools:
        warm = [await pool.acquire() for _ in range(CONNECTIONS)]
        for connection in warm:
            await pool.release(connection)
    observer = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        stage = Stage(store, observer)
        await stage.set_up()
        yield stage
    finally:
        await observer.close()
        await store.close()
