"""What a workload is given, and what makes a module one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bench.mill import Mill, running_mill
from bench.results import Sample, Settings, StoreName
from bench.stores import FreshStore


@dataclass
class Stage:
    """One workload on one store: how thorough to be, where to measure, whom to tell."""

    quick: bool
    repeats: int
    fresh_store: FreshStore
    say: Callable[[str], None]
    settings: Settings = field(default_factory=dict)  # grows by what is read back

    @asynccontextmanager
    async def mill(self, imports: Sequence[str] = ()) -> AsyncIterator[Mill]:
        """A running system on an empty store."""
        async with (
            self.fresh_store() as (address, settings),
            running_mill(address, imports) as mill,
        ):
            self.settings |= settings | mill.settings
            yield mill


Measure: TypeAlias = Callable[[Stage], Coroutine[Any, Any, list[Sample]]]


@dataclass(frozen=True)
class Workload:
    """A question that the harness can answer."""

    name: str
    measure: Measure
    stores: tuple[StoreName, ...] = ("sqlite", "postgresql")
