"""`limit`: what the store can do with the rows of Tidemill when nothing else takes time.

Bare SQL on the tables of the product, with their indexes, checks and triggers, and none of its
code. A batch of runs of one task begins in one transaction; a second one ends the batch before
(task and run) and leases this one. Each transaction adds one row of facts to the outbox, like
the real ones. Batches of 100, 500 and 1,000 on one and on two connections; `limit` is the best
of the six. `limit-chain3` is the best for runs of three tasks with small results: each end leases
the next task in the same transaction, and is counted in the run; a quick run tries it only with
the largest batches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import product
from statistics import median
from typing import NamedTuple, TypeAlias

import msgspec

from bench.bare.postgres import BarePostgres
from bench.bare.sqlite import BareSqlite, Turnstile
from bench.bare.store import BareConnection, drive
from bench.results import Sample, Settings
from bench.stage import Stage
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.system import SystemClock
from tidemill.runtime.wiring import open_store

TASKS = 40_000
TASKS_QUICK = 8_000
METRIC, UNIT = "tasks_per_second", "1/s"


class Combination(NamedTuple):
    """How many runs begin together, and on how many connections at once."""

    batch: int
    connections: int

    def __str__(self) -> str:
        return f"batch-{self.batch}-connections-{self.connections}"

    @property
    def settings(self) -> Settings:
        """As the rows have them."""
        return dict(self._asdict())


COMBINATIONS = [Combination(*one) for one in product((100, 500, 1_000), (1, 2))]
QUICK_COMBINATIONS = COMBINATIONS[-2:]
CHAIN = "chain3"
Rates: TypeAlias = dict[Combination, list[float]]


async def measure_limit(stage: Stage) -> list[Sample]:
    """Tasks per second of every combination."""
    jobs = await _measure_all(stage, 1, COMBINATIONS)
    chains = await _measure_all(stage, 3, QUICK_COMBINATIONS if stage.quick else COMBINATIONS)
    return [
        *(_sample(rates, str(one), one) for one, rates in jobs.items()),
        *(_sample(rates, f"{CHAIN}-{one}", one) for one, rates in chains.items()),
    ]


def with_best(samples: list[Sample]) -> list[Sample]:
    """In front of the combinations of jobs, the best of them and the best of chains."""
    chains = [one for one in samples if one.variant.startswith(CHAIN)]
    jobs = [one for one in samples if one not in chains]
    return [_best(jobs, ""), _best(chains, CHAIN), *jobs]


def _best(samples: Sequence[Sample], variant: str) -> Sample:
    best = max(samples, key=lambda one: median(one.repeats))
    return msgspec.structs.replace(best, variant=variant)


def _sample(rates: Sequence[float], variant: str, combination: Combination) -> Sample:
    return Sample(METRIC, UNIT, rates, variant, settings=combination.settings)


async def _measure_all(stage: Stage, length: int, combinations: Sequence[Combination]) -> Rates:
    rates: Rates = {one: [] for one in combinations}
    for _, one in product(range(stage.repeats), combinations):
        rates[one].append(await _rate(stage, one, length))
        stage.say(f"{rates[one][-1]:,.0f} tasks per second, {length} per run, {one}")
    return rates


async def _rate(stage: Stage, combination: Combination, length: int) -> float:
    """Of one fresh store, after one batch to warm up; whatever does not end is an error."""
    size, connections = combination
    wished = TASKS_QUICK if stage.quick else TASKS
    each = size * connections * length
    batches = max(1, round(wished / each))
    async with stage.fresh_store() as (address, settings), AsyncExitStack() as stack:
        stage.settings |= settings
        await _migrate(address)
        opened = await _open(address, connections, stack)
        await asyncio.gather(*(drive(one, 1, size, length) for one in opened))
        begin = time.perf_counter()
        await asyncio.gather(*(drive(one, batches, size, length) for one in opened))
        seconds = time.perf_counter() - begin
        ended = await opened[0].count_ended()
    if ended != (batches + 1) * each:
        raise RuntimeError(f"{ended} of {(batches + 1) * each} tasks have ended")
    return batches * each / seconds


async def _migrate(address: StoreAddress) -> None:
    store = await open_store(address, SystemClock())
    try:
        await store.migrate()
    finally:
        await store.close()


async def _open(
    address: StoreAddress, connections: int, stack: AsyncExitStack
) -> list[BareConnection]:
    opened = list[BareConnection]()
    turnstile = Turnstile()
    for _ in range(connections):
        if address.dsn is not None:
            opened.append(await BarePostgres.open(address.dsn))
        else:
            assert address.path is not None
            opened.append(BareSqlite(address.path, turnstile))
        stack.push_async_callback(opened[-1].close)
    return opened
