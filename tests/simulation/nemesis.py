"""The nemesis: strikes nodes and connections while the first phase of a seed lasts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from tests.simulation.chance import Chance
from tests.simulation.cluster import Cluster
from tests.simulation.database import Database
from tests.simulation.journal import Journal
from tests.simulation.network import Network
from tests.simulation.nodes import Node

PAUSE_SECONDS = (0.5, 2.0, 4.0, 9.0, 20.0)
PARTITION_SECONDS = (0.5, 2.0, 5.0, 12.0)
ISOLATION_SECONDS = (4.0, 9.0, 14.0)
OUTAGE_SECONDS = (0.5, 2.0, 5.0, 12.0)


class Nemesis:
    """Draws a strike every now and then."""

    def __init__(self, cluster: Cluster, network: Network, database: Database) -> None:
        self._cluster = cluster
        self._network = network
        self._database = database
        self._chance: Chance = cluster.chance
        self._journal: Journal = cluster.journal
        self._calm_seconds = self._chance.random.choice((1.5, 4.0))
        self.bodies: Counter[str] = Counter()  # under way, by worker process
        self.drains: dict[Node, Callable[[], object]] = {}

    async def run(self, seconds: float) -> None:
        """Strike until the time is over."""
        loop = self._cluster.loop
        strikes = {
            "node.kill": self._kill,
            "node.pause": self._pause,
            "node.drain": self._drain,
            "node.blackout": self._blackout,
            "net.partition": self._partition,
            "net.isolate": self._isolate,
            "net.half_open": self._half_open,
            "net.silent_death": self._silent_death,
            "store.outage": self._outage,
        }
        chosen = [name for name in strikes if self._chance.has(name)]
        end = loop.time() + seconds
        while loop.time() < end:
            await asyncio.sleep(self._chance.between(0.2, self._calm_seconds))
            name = self._chance.random.choice(chosen) if chosen else ""
            if name and self._chance.sometimes(name):
                self._journal.note("nemesis", name)
                strikes[name]()

    def _any(self, *prefixes: str) -> Node | None:
        prefix = self._chance.random.choice(prefixes)
        living = self._cluster.living(prefix)
        return self._chance.random.choice(living) if living else None

    def _kill(self) -> None:
        node = self._any("worker", "worker", "scheduler", "relay", "client")
        if node is not None:
            node.kill()

    def _silent_death(self) -> None:
        node = self._any("worker", "scheduler")
        if node is not None:
            node.silent = True
            node.kill()

    def _pause(self) -> None:
        node = self._any("worker", "worker", "scheduler", "relay")
        if self._chance.random.random() < 0.3:
            node = self._busiest()
        if node is not None:
            node.pause()
            seconds = self._chance.random.choice(PAUSE_SECONDS)
            self._journal.note(node.name, "is paused for", seconds)
            self._cluster.loop.call_outside(seconds, node.resume)

    def _drain(self) -> None:
        node = self._any("worker")
        if node is not None and node in self.drains:
            self.drains.pop(node)()

    def _blackout(self) -> None:
        for node in self._cluster.living(self._chance.random.choice(("scheduler", "worker", ""))):
            node.kill()

    def _partition(self) -> None:
        worker, scheduler = self._any("worker"), self._any("scheduler")
        if worker is not None and scheduler is not None:
            seconds = self._chance.random.choice(PARTITION_SECONDS)
            self._network.partition(worker, scheduler, seconds)

    def _busiest(self) -> Node | None:
        """A worker in the middle of something: a fault hurts more there."""
        workers = self._cluster.living("worker")
        return max(workers, key=lambda node: self.bodies[node.name], default=None)

    def _isolate(self) -> None:
        worker = self._busiest()
        seconds = self._chance.random.choice(ISOLATION_SECONDS)
        for scheduler in self._cluster.living("scheduler"):
            if worker is not None:
                self._network.partition(worker, scheduler, seconds)

    def _half_open(self) -> None:
        worker, scheduler = self._any("worker"), self._any("scheduler")
        if worker is not None and scheduler is not None:
            for connection in self._network.between(worker, scheduler):
                connection.silence(up=self._chance.random.random() < 0.5)

    def _outage(self) -> None:
        seconds = self._chance.random.choice(OUTAGE_SECONDS)
        self._database.down_until = self._cluster.loop.time() + seconds
