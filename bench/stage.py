"""What a workload is given, and what makes a module one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bench.mill import Mill, running_mill
from bench.results import BusName, PeerStoreName, Sample, Settings, StoreName
from bench.stores import FreshStore


@dataclass
class Stage:
    """One workload on one store and bus: how thorough to be, where to measure, whom to tell."""

    quick: bool
    repeats: int
    fresh_store: FreshStore  # not for peers on Redis, which bring it along
    say: Callable[[str], None]
    settings: Settings = field(default_factory=dict)  # grows by what is read back
    bus: BusName = "none"
    bus_url: str = "memory:"

    @asynccontextmanager
    async def mill(self, imports: Sequence[str] = ()) -> AsyncIterator[Mill]:
        """A running system on an empty store."""
        async with (
            self.fresh_store() as (address, settings),
            running_mill(address, imports, self.bus_url) as mill,
        ):
            self.settings |= settings | mill.settings
            yield mill


Measure: TypeAlias = Callable[[Stage], Coroutine[Any, Any, list[Sample]]]
Conclude: TypeAlias = Callable[[list[Sample]], list[Sample]]


@dataclass(frozen=True)
class Workload:
    """A question that the harness can answer; how small a quick answer is, `Stage.quick` says."""

    name: str
    measure: Measure
    stores: tuple[StoreName, ...] = ("sqlite", "postgresql")
    buses: tuple[BusName, ...] = ("none",)
    in_quick: bool = True  # one that is not must be asked for by name in a quick run
    in_rounds: bool = False  # takes turns with the others of its kind: their figures are compared
    conclude: Conclude = list  # what follows from all repeats together


@dataclass(frozen=True)
class Peer:
    """Another program that does the same work on the same servers."""

    name: str
    store: PeerStoreName
    measure: Measure
    losses: str  # what a crash costs, in one sentence
    durable: bool = True  # what was acknowledged survives a crash, in the settings measured here
    settings: Settings = field(default_factory=dict)
