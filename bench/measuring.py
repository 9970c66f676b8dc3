"""Goes through stores, buses, workloads and peers, and gives rows as they come."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import product

from bench.buses import Buses
from bench.machine import describe_surroundings
from bench.results import (
    BusName,
    PeerResult,
    Result,
    Sample,
    Settings,
    StoreName,
    summarise,
    summarise_peer,
)
from bench.stage import Measure, Peer, Stage, Workload
from bench.stores import FreshStore, store_source
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.loops import run_serving

Say = Callable[[str, str, str], None]


@dataclass(frozen=True)
class Choice:
    """What was asked for."""

    workloads: Sequence[Workload]
    peers: Sequence[Peer]
    stores: Sequence[StoreName]
    buses: Sequence[BusName]
    repeats: int
    quick: bool


@dataclass
class Measuring:
    """One go of the harness; servers start when first needed and end with the stack."""

    choice: Choice
    stack: ExitStack
    say: Say  # name, where, what
    failed: list[str] = field(default_factory=list)  # a failure must not cost the other figures

    def __post_init__(self) -> None:
        self._buses = Buses(self.stack)
        self._stores = dict[StoreName, FreshStore]()
        self._began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def results(self) -> Iterator[list[Result]]:
        """The rows of each workload on each store and bus that it declares."""
        choice = self.choice
        for store, bus, workload in product(choice.stores, choice.buses, choice.workloads):
            if store in workload.stores and bus in workload.buses:
                yield self._result(workload, store, bus)

    def peers(self) -> Iterator[list[PeerResult]]:
        """The rows of each peer."""
        for peer in self.choice.peers:
            stage = self._stage(peer.name, peer.store)
            if peer.store != "redis":
                stage.fresh_store = self._fresh_store(peer.store)
            samples, settings = self._measure(peer.name, peer.measure, stage)
            settings |= peer.settings | {"losses": peer.losses, "durable": peer.durable}
            yield summarise_peer(peer.name, peer.store, samples, settings)

    def _result(self, workload: Workload, store: StoreName, bus: BusName) -> list[Result]:
        stage = self._stage(workload.name, store if bus == "none" else f"{store} {bus}")
        stage.fresh_store = self._fresh_store(store)
        stage.bus = bus
        stage.bus_url, settings = self._buses.fresh(bus)
        stage.settings |= settings
        samples, settings = self._measure(workload.name, workload.measure, stage)
        return summarise(workload.name, store, samples, settings, bus)

    def _stage(self, name: str, where: str) -> Stage:
        return Stage(
            quick=self.choice.quick,
            repeats=self.choice.repeats,
            fresh_store=_no_store,
            say=partial(self.say, name, where),
        )

    def _fresh_store(self, name: StoreName) -> FreshStore:
        if name not in self._stores:
            self._stores[name] = self.stack.enter_context(store_source(name))
        return self._stores[name]

    def _measure(
        self, name: str, measure: Measure, stage: Stage
    ) -> tuple[Sequence[Sample], Settings]:
        surroundings = describe_surroundings() | {"run": self._began, "quick": stage.quick}
        begin = time.perf_counter()
        samples: Sequence[Sample] = ()
        try:
            samples = run_serving(measure(stage))
        except Exception:  # noqa: BLE001 - the other figures are still wanted
            stage.say(f"failed:\n{traceback.format_exc()}")
            self.failed.append(name)
        stage.say(f"done in {time.perf_counter() - begin:.0f} s")
        return samples, surroundings | stage.settings


def _no_store() -> AbstractAsyncContextManager[tuple[StoreAddress, Settings]]:
    raise RuntimeError("there is no store here: what lives on Redis brings it along")
