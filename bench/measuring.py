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
    joined,
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
        for store, bus in product(choice.stores, choice.buses):
            asked = [one for one in choice.workloads if store in one.stores and bus in one.buses]
            yield from self._in_rounds([one for one in asked if one.in_rounds], store, bus)
            for workload in asked:
                if not workload.in_rounds:
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

    def _in_rounds(
        self, workloads: Sequence[Workload], store: StoreName, bus: BusName
    ) -> Iterator[list[Result]]:
        """Each once, then each again: what is compared must meet the same machine, and a shared
        one is now faster, now slower.
        """
        left = {one: self._stage_on(one, store, bus, repeats=1) for one in workloads}
        rounds = dict[Workload, list[Sequence[Sample]]]((one, []) for one in workloads)
        settings = dict[Workload, Settings]()
        for _, workload in product(range(self.choice.repeats), workloads):
            if workload in left:
                samples, read = self._measure(workload.name, workload.measure, left[workload])
                rounds[workload].append(samples)
                settings[workload] = read
                if not samples:
                    del left[workload]  # it has failed, which is said once
        for workload in left:
            samples = workload.conclude(joined(rounds[workload]))
            yield summarise(workload.name, store, samples, settings[workload], bus)

    def _result(self, workload: Workload, store: StoreName, bus: BusName) -> list[Result]:
        stage = self._stage_on(workload, store, bus, repeats=self.choice.repeats)
        samples, settings = self._measure(workload.name, workload.measure, stage)
        return summarise(workload.name, store, samples, settings, bus)

    def _stage_on(
        self, workload: Workload, store: StoreName, bus: BusName, *, repeats: int
    ) -> Stage:
        stage = self._stage(workload.name, store if bus == "none" else f"{store} {bus}")
        stage.repeats = repeats
        stage.fresh_store = self._fresh_store(store)
        stage.bus = bus
        stage.bus_url, settings = self._buses.fresh(bus)
        stage.settings |= settings
        return stage

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
