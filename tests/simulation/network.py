"""The network: connections from workers to the doors of schedulers, and how they go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.simulation.chance import Chance
from tests.simulation.journal import Journal
from tests.simulation.loop import SimLoop
from tests.simulation.nodes import Node
from tests.simulation.pipes import Pipe
from tidemill.protocol.door import Door
from tidemill.protocol.messages import SchedulerMessage, WorkerMessage
from tidemill.worker.link import LinkLost


class Network:
    """Who can be reached, and all connections."""

    def __init__(self, loop: SimLoop, chance: Chance, journal: Journal) -> None:
        self.loop = loop
        self.chance = chance
        self.journal = journal
        self.doors: dict[str, tuple[Node, Door]] = {}
        self.connections: list[Connection] = []
        self.on_error: Callable[[str], None] = lambda _text: None
        self._apart_until: dict[tuple[str, str], float] = {}

    def delay(self) -> float:
        """How long the next message travels."""
        if self.chance.sometimes("net.slow"):
            return self.chance.random.choice((0.1, 0.5, 2.0))
        return self.chance.between(0.0002, 0.002)

    async def connect(self, worker: Node) -> Connection:
        """Reach some scheduler from a worker, or LinkLost."""
        await asyncio.sleep(self.delay())
        name = self.chance.random.choice(sorted(self.doors))
        node, door = self.doors[name]
        if not node.alive or node.paused or self._apart(worker.name, node.name):
            await asyncio.sleep(0.01)
            raise LinkLost(f"{name} cannot be reached")
        connection = Connection(self, worker, node)
        self.connections.append(connection)
        connection.serve(door)
        return connection

    def partition(self, worker: Node, scheduler: Node, seconds: float) -> None:
        """Keep two nodes apart for a while: what they send arrives late, new ties fail."""
        self._apart_until[worker.name, scheduler.name] = self.loop.time() + seconds
        for connection in self.between(worker, scheduler):
            connection.block(self.loop.time() + seconds)

    def heal(self) -> None:
        """End all partitions; connections that have gone silent break at last."""
        self._apart_until.clear()
        for connection in self.connections:
            if connection.is_silent():
                connection.snap()

    def between(self, worker: Node, scheduler: Node) -> list[Connection]:
        """The connections of two nodes."""
        return [
            connection
            for connection in self.connections
            if connection.worker is worker and connection.scheduler is scheduler
        ]

    def _apart(self, worker: str, scheduler: str) -> bool:
        return self._apart_until.get((worker, scheduler), 0.0) > self.loop.time()


class Connection:
    """Both directions of one stream."""

    def __init__(self, network: Network, worker: Node, scheduler: Node) -> None:
        self.network = network
        self.worker = worker
        self.scheduler = scheduler
        self.up = Pipe(network.loop, scheduler, network.delay)
        self.down = Pipe(network.loop, worker, network.delay)
        self._server: asyncio.Task[Any] | None = None
        self._over = False
        worker.on_kill.append(self._side_died)
        scheduler.on_kill.append(self._side_died)

    def serve(self, door: Door) -> None:
        """Let the door answer, on the scheduler's node."""
        self._server = self.scheduler.spawn(self._serve(door))

    async def _serve(self, door: Door) -> None:
        answers = door.attach(self.up)
        try:
            async for message in answers:
                self.send(self.down, message)
        except Exception as error:
            self.network.on_error(f"the door of {self.scheduler.name} failed: {error!r}")
        finally:
            self.down.finish()

    def send(self, pipe: Pipe, message: Any) -> None:
        """Send, or break on the way."""
        if self.network.chance.sometimes("net.break"):
            self.snap()
        pipe.send(message)

    def snap(self) -> None:
        """Break: each side notices at a time of its own."""
        if self._over:
            return
        self._over = True
        chance = self.network.chance
        self.network.journal.note("network", "broken:", self.worker.name, self.scheduler.name)
        self.down.snap(chance.random.choice((0.0, 0.01, 0.5, 3.0)))
        self._hang_up(chance.random.choice((0.0, 0.01, 0.5, 3.0)))

    def close(self) -> None:
        """The worker hangs up."""
        if not self._over:
            self._over = True
            self.up.finish()
            self._cancel_server(0.05)

    def block(self, until: float) -> None:
        """Deliver nothing before the moment given."""
        self.up.blocked_until = self.down.blocked_until = until

    def silence(self, *, up: bool) -> None:
        """Make one direction lose everything from now on, unnoticed."""
        (self.up if up else self.down).silent = True

    def is_silent(self) -> bool:
        """Whether a direction loses everything."""
        return self.up.silent or self.down.silent

    def _side_died(self) -> None:
        if self._over:
            return
        if self.worker.silent or self.scheduler.silent:
            self.up.silent = self.down.silent = True
            return
        self._over = True
        notice = self.network.delay()
        self.down.snap(notice)
        self._hang_up(notice)

    def _hang_up(self, notice: float) -> None:
        self.up.snap(notice)
        self._cancel_server(notice + 0.05)

    def _cancel_server(self, notice: float) -> None:
        server = self._server
        if server is not None:
            self.network.loop.call_outside(notice, lambda: server.cancel() and None)


class SimLink:
    """A worker's way to a scheduler, as its session sees it."""

    def __init__(self, network: Network, node: Node) -> None:
        self._network = network
        self._node = node

    async def open(self, outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Connect to some scheduler and exchange messages until either side ends it."""
        connection = await self._network.connect(self._node)
        pump = asyncio.create_task(self._pump(outgoing, connection))
        try:
            async for message in connection.down:
                yield message
        finally:
            pump.cancel()
            connection.close()

    async def _pump(self, outgoing: AsyncIterator[WorkerMessage], connection: Connection) -> None:
        async for message in outgoing:
            connection.send(connection.up, message)
        connection.up.finish()
