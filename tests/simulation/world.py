"""The world of one seed: all parts put together, its two phases, and what came out."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import warnings
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from tests.simulation.chance import Chance
from tests.simulation.checkers import SLOTS
from tests.simulation.cluster import Cluster
from tests.simulation.database import Database, drive
from tests.simulation.faulty_store import NodeStore
from tests.simulation.journal import LINES_KEPT, Journal
from tests.simulation.liveness import Liveness
from tests.simulation.loop import HOST, SimLoop, Stuck
from tests.simulation.nemesis import Nemesis
from tests.simulation.network import Network, SimLink
from tests.simulation.nodes import Node, NodeClock, NodeEntropy
from tests.simulation.observer import Observer
from tests.simulation.shapes import EXECUTOR, QUEUES
from tests.simulation.sim_broker import BrokerHub, SimBroker, spy_on
from tests.simulation.sim_bus import Hub, SimBus
from tests.simulation.violation import Violation
from tests.simulation.workload import (
    Client,
    ScriptedExecutor,
    SimulatedExecutor,
    Submission,
    draw_submissions,
    with_functions,
    without_clocks,
)
from tidemill.domain.routes import PYTHON
from tidemill.engine import preparing
from tidemill.gateway.broker_gateway import BrokerGateway
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.protocol.messages import SchedulerMessage, WorkerMessage
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.stores.sqlite.store import SqliteStore
from tidemill.worker.broker_worker import BrokerWorker
from tidemill.worker.config import WorkerConfig
from tidemill.worker.worker import Worker

SCHEDULERS = 2
WORKERS = 3
RELAYS = 2
CLIENTS = 2
BROKER_WORLD_EVERY = 5
"""In one seed of so many, some or all workers are behind a broker."""

OFFERS_WORLD_EVERY = 3
"""In one seed of so many, tasks call functions that not every worker offers."""

OFFERED = (("sim:a", "sim:b"), ("sim:a",), ("sim:b",))
"""By the number of the worker."""

SECONDS_MAX = 600.0
STEPS_MAX = 400_000
RELAY = RelayConfig(keep_seconds=3.0, prune_seconds=1.0)


@dataclass
class Outcome:
    """What one seed has shown."""

    seed: int
    violations: list[Violation]
    counts: Counter[str]
    moves: Counter[str]
    digest: str
    endings: dict[str, str]
    steps: int
    seconds: float
    swarm: str
    lines: list[str] = field(default_factory=list)


class Calm(StrEnum):
    """Worlds in which only the bus goes wrong: what comes out must not depend on it."""

    WITH_BUS = "with bus"
    WITHOUT_BUS = "without bus"


class World:
    """Everything that exists in one seed."""

    def __init__(
        self, seed: int, *, calm: Calm | None = None, lines_kept: int = LINES_KEPT
    ) -> None:
        self.seed = seed
        self.calm = calm
        self.chance = Chance(seed)
        if calm is not None:
            self.chance.keep_only("bus.")
        self.loop = SimLoop(Random(seed ^ 0x5EED), seconds_max=SECONDS_MAX, steps_max=STEPS_MAX)
        self.journal = Journal(self.loop, kept=lines_kept)
        self.clock = NodeClock(self.loop)
        self.store = SqliteStore(":memory:", self.clock, threads=False)
        drive(self.store.migrate())
        self.database = Database(self.store, self.loop, self.chance, self.journal)
        self.hub = Hub(self.loop, self.chance)
        if calm is not None:
            self.hub.deleted = calm is Calm.WITHOUT_BUS
        self.network = Network(self.loop, self.chance, self.journal)
        with_broker = calm is None and seed % BROKER_WORLD_EVERY == BROKER_WORLD_EVERY - 1
        self.broker = BrokerHub(self.loop, seed) if with_broker else None
        self._behind_broker = 0 if self.broker is None else self.broker.random.randint(1, WORKERS)
        self.cluster = Cluster(self.loop, self.chance, self.journal)
        self.nemesis = Nemesis(self.cluster, self.network, self.database)
        # Small bounds make small runs take the ways that only large ones take otherwise.
        preparing.COMMIT_ROWS_MAX = self.chance.random.choice((4, 10, 2_000))
        self._config = SchedulerConfig(
            turn_rows_max=self.chance.random.choice((3, 10, 1_000)),
            turn_items_max=self.chance.random.choice((2, 1_000)),
            inbox_items_max=self.chance.random.choice((3, 10_000)),
            assignment_bytes_max=self.chance.random.choice((700, 4_000_000)),
            outgoing_messages_max=self.chance.random.choice((5, 1_000)),
        )
        self._mixed_offers = calm is None and seed % OFFERS_WORLD_EVERY == 1
        self.wishes = self._draw_wishes()
        self.observer = Observer(self._query, self.clock.now, self.wishes, self.journal)
        self.nemesis.bodies = self.observer.executions.bodies
        self._log = _Listener(self)
        self._over: asyncio.Future[None] = self.loop.create_future()

    def _draw_wishes(self) -> list[Submission]:
        wishes = draw_submissions(self.chance)
        if self.calm is not None:
            wishes = [without_clocks(wish) for wish in wishes]
        return [with_functions(wish) for wish in wishes] if self._mixed_offers else wishes

    def run(self) -> Outcome:
        """Live through both phases."""
        self.database.on_commit = self.observer.note_commit
        self.observer.on_violation = self._end
        self.cluster.on_role_ended = self._note_role_ended
        self.network.on_error = self._note_error
        self.loop.set_exception_handler(self._note_exception)
        logging.getLogger("tidemill").addHandler(self._log)
        story = self.loop.create_task(self._story())
        story.add_done_callback(self._note_story_over)
        try:
            self.loop.run_until_complete(self._over)
        except Stuck as stuck:
            self.observer.report(Violation("I2", str(stuck)))
        outcome = self._outcome()
        self._tear_down()
        return outcome

    async def _story(self) -> None:
        self._populate()
        if self.broker is not None:
            self.loop.create_task(self.broker.storm())
        await self.nemesis.run(self.chance.between(15.0, 40.0))
        self.journal.note("world", "faults stop")
        self.chance.faults_on = False
        self.database.down_until = 0.0
        self.network.heal()
        if self.broker is not None:
            self.broker.mend()
        self.cluster.mend()
        liveness = Liveness(self.observer, self.hub, self.wishes, self.cluster, self.database)
        liveness.mixed_offers = self._mixed_offers
        await liveness.watch()

    def _populate(self) -> None:
        for number in range(SCHEDULERS):
            self.cluster.add(f"scheduler-{number}", self._run_scheduler)
        for number in range(WORKERS):
            self.cluster.add(f"worker-{number}", self._run_worker, may_end=True)
        for number in range(RELAYS):
            self.cluster.add(f"relay-{number}", self._run_relay)
        for number in range(CLIENTS):
            self.cluster.add(f"client-{number}", self._run_client, may_end=True)

    async def _run_scheduler(self, node: Node, clock: NodeClock, entropy: NodeEntropy) -> None:
        scheduler = Scheduler(
            name=node.name,
            store=NodeStore(self.database, node),
            bus=SimBus(self.hub, node),
            clock=clock,
            entropy=entropy,
            config=self._config,
        )
        self.network.doors[node.name.partition(".")[0]] = (node, scheduler)
        if self.broker is None:
            return await scheduler.run()
        broker = SimBroker(self.broker, node)
        gateway = BrokerGateway(scheduler.pool_door, broker, clock)
        await asyncio.gather(scheduler.run(), gateway.run())
        return None

    async def _run_worker(self, node: Node, clock: NodeClock, entropy: NodeEntropy) -> None:
        kind = SimulatedExecutor if self.calm is None else ScriptedExecutor
        executor = kind(node, clock, self.chance, self.observer.executions)
        executor.killers = {wish.workflow.name: wish.killer for wish in self.wishes}
        number = int(node.name.partition(".")[0][-1])
        if self._mixed_offers:
            executor.functions = OFFERED[number]
        functions = {} if executor.functions is None else {PYTHON: executor.functions}
        config = WorkerConfig(name=node.name, slots=SLOTS, queues=QUEUES, functions=functions)
        executors = {EXECUTOR: executor, PYTHON: executor}
        worker: Worker | BrokerWorker
        if self.broker is not None and number < self._behind_broker:
            broker = SimBroker(self.broker, node)
            worker = BrokerWorker(config, broker, executors, clock, entropy)
            spy_on(broker, worker, self.observer.executions)
        else:
            link = _SpiedLink(self, node)
            worker = Worker(config, [link], executors, clock, entropy)
        self.nemesis.drains[node] = lambda: node.spawn(worker.drain(2.0))
        await worker.run()

    async def _run_relay(self, node: Node, clock: NodeClock, _entropy: NodeEntropy) -> None:
        store, bus = NodeStore(self.database, node), SimBus(self.hub, node)
        relay = Relay(name=node.name, store=store, bus=bus, clock=clock, config=RELAY)
        await relay.run()

    async def _run_client(self, node: Node, clock: NodeClock, entropy: NodeEntropy) -> None:
        client = Client(
            number=int(node.name.partition(".")[0].partition("-")[2]),
            store=NodeStore(self.database, node),
            bus=SimBus(self.hub, node),
            clock=clock,
            entropy=entropy,
            chance=self.chance,
            submissions=self.wishes,
            executions=self.observer.executions,
        )
        await client.run()

    def _query(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.store._writer.raw.execute(text, values).fetchall()

    def _note_role_ended(self, name: str, error: BaseException | None) -> None:
        self.observer.report(Violation("I10", f"{name} has ended: {error!r}"))

    def _note_error(self, text: str) -> None:
        self.observer.report(Violation("I10", text))

    def _note_exception(self, _loop: Any, context: dict[str, Any]) -> None:
        text = f"{context.get('message')}: {context.get('exception')!r}"
        self.observer.report(Violation("I10", text))

    def _note_story_over(self, story: asyncio.Task[None]) -> None:
        if not story.cancelled() and story.exception() is not None:
            self.observer.report(Violation("harness", repr(story.exception())))
        self._end()

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _outcome(self) -> Outcome:
        look, broker = self.observer.look, self.broker
        return Outcome(
            seed=self.seed,
            violations=self.observer.violations,
            counts=self.chance.counts + (Counter() if broker is None else broker.counts),
            moves=look.fold.moves,
            digest=self.observer.digest(),
            endings=self._endings(),
            steps=self.loop.steps,
            seconds=self.loop.time(),
            swarm=self.chance.describe() + ("" if broker is None else f" {broker.describe()}"),
            lines=self.journal.lines() if self.observer.violations else [],
        )

    def _endings(self) -> dict[str, str]:
        look = self.observer.look
        ended = {run.workflow: run.state for run in look.runs.values()}
        for key, row in look.tasks.items():
            ended[f"{look.runs[key.run_id].workflow}/{key.position}"] = row.state
        return dict(sorted(ended.items()))

    def _tear_down(self) -> None:
        logging.getLogger("tidemill").removeHandler(self._log)
        self.loop.set_exception_handler(lambda _loop, _context: None)
        self.loop.abandon()
        self.store._writer.close()


class _Listener(logging.Handler):
    """Hears what production code says: an error that it did not expect is a violation."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        """Note a line; an error ends the seed."""
        host = HOST.get()
        self._world.journal.note(getattr(host, "name", "log"), record.getMessage())
        if record.levelno >= logging.ERROR and not self._world.observer.violations:
            error = record.exc_info[1] if record.exc_info else None
            text = f"{record.getMessage()} {error!r}"
            self._world.observer.report(Violation("I10", text))


class _SpiedLink:
    """A worker's link whose words the checkers hear."""

    def __init__(self, world: World, node: Node) -> None:
        self._world = world
        self._link = SimLink(world.network, node)

    def open(self, outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Open the real link."""
        return self._link.open(self._heard(outgoing))

    async def _heard(self, outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[WorkerMessage]:
        async for message in outgoing:
            self._world.observer.executions.spy(message)
            yield message


def run_seed(seed: int, *, calm: Calm | None = None, lines_kept: int = LINES_KEPT) -> Outcome:
    """Run one seed, with the garbage collector out of the way, and clean up after it."""
    gc.disable()
    logging.getLogger("tidemill").propagate = False
    hook, sys.unraisablehook = sys.unraisablehook, lambda _unraisable: None
    try:
        # Unfinished coroutines of the seed are closed here; what they complain of means nothing.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = World(seed, calm=calm, lines_kept=lines_kept).run()
            logging.disable()
            gc.collect()
    finally:
        logging.disable(logging.NOTSET)
        sys.unraisablehook = hook
        gc.enable()
    return outcome
