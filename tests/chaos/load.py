"""Submits workflows without end, as a process of its own; patient when the store is away.

Keeps some hundred runs open, and writes down what was accepted: one line for each answer that it
got. The same key is used again until there is an answer, so nothing is started twice or forgotten.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import heapq
import json
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import IO, TypeVar

import asyncpg

from tests.chaos.shapes import Shape, draw_shape
from tests.chaos.work import MODULUS
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.engine.runs import Started, StartRequest, cancel, start
from tidemill.ports.bus import Bus
from tidemill.runtime.system import SystemEntropy
from tidemill.runtime.wiring import open_bus
from tidemill.stores.postgres.store import PostgresStore

BATCH = 40
LOOK_SECONDS = 0.1
WAIT_SECONDS = 0.1
TWICE = 0.1  # of the batches are submitted a second time, under the same keys
KEYLESS = 0.05  # of the requests have no key
ANSWER_SECONDS = 5.0
# A server that is killed or frozen shows in many ways; TimeoutError is an OSError.
ASYNCPG_ERRORS = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
OPEN_RUNS = "SELECT id FROM run WHERE id >= $1 AND ended_at IS NULL ORDER BY id"

T = TypeVar("T")


class Load:
    """One generator of load."""

    def __init__(
        self, store: PostgresStore, bus: Bus, seed: int, open_max: int, accepted: IO[str]
    ) -> None:
        self._store = store
        self._bus = bus
        self._entropy = SystemEntropy()
        self._chance = Random(seed)
        self._seed = seed
        self._open_max = open_max
        self._accepted = accepted
        self._number = 0
        self._cancels: list[tuple[float, RunId]] = []
        self.stopping = asyncio.Event()

    async def run(self, open_runs: Callable[[], Awaitable[int]]) -> None:
        """Submit until asked to stop, and cancel what is to be cancelled."""
        async with asyncio.TaskGroup() as duties:
            cancelling = duties.create_task(self._keep_cancelling())
            while not self.stopping.is_set():
                room = self._open_max - await patiently(open_runs)
                if room > 0:
                    await self._submit(min(room, BATCH))
                await self._nap(LOOK_SECONDS if room < BATCH else 0.0)
            await cancelling

    async def _submit(self, count: int) -> None:
        shapes = [draw_shape(self._chance) for _ in range(count)]
        requests = [self._request(shape) for shape in shapes]
        started = await self._start(requests)
        self._write({"accepted": [one.run_id for one in started]})
        if self._chance.random() < TWICE:
            await self._submit_again(requests, started)
        now = time.monotonic()
        for shape, one in zip(shapes, started, strict=True):
            if shape.cancel_seconds is not None:
                heapq.heappush(
                    self._cancels, (now + self._chance.uniform(*shape.cancel_seconds), one.run_id)
                )

    async def _submit_again(
        self, requests: Sequence[StartRequest], started: Sequence[Started]
    ) -> None:
        keyed = [place for place, request in enumerate(requests) if request.key is not None]
        again = await self._start([requests[place] for place in keyed])
        first = [started[place].run_id for place in keyed]
        self._write({"twice": len(keyed), "same": [one.run_id for one in again] == first})

    async def _start(self, requests: Sequence[StartRequest]) -> list[Started]:
        return await patiently(lambda: start(self._store, self._bus, self._entropy, requests))

    def _request(self, shape: Shape) -> StartRequest:
        self._number += 1
        # Without a key, a run whose answer was lost is not known here, and never cancelled.
        has_key = self._chance.random() >= KEYLESS or shape.cancel_seconds is not None
        return StartRequest(
            workflow=shape.workflow,
            input={"salt": self._chance.randrange(MODULUS)},
            key=f"chaos-{self._seed}-{self._number}" if has_key else None,
        )

    async def _keep_cancelling(self) -> None:
        while self._cancels or not self.stopping.is_set():
            while self._cancels and self._cancels[0][0] <= time.monotonic():
                _, run_id = heapq.heappop(self._cancels)
                await self._cancel(run_id)
            await asyncio.sleep(WAIT_SECONDS)

    async def _cancel(self, run_id: RunId) -> None:
        await patiently(lambda: cancel(self._store, self._bus, "default", run_id))
        self._write({"cancelled": run_id})

    def _write(self, line: object) -> None:
        self._accepted.write(json.dumps(line) + "\n")
        self._accepted.flush()

    async def _nap(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()


class OpenRuns:
    """Counts open runs over a connection of its own, looking only at those not ended before."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._oldest = "00000000-0000-0000-0000-000000000000"
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    async def count(self) -> int:
        """How many there are; Unavailable when the store is away."""
        try:
            if self._connection is None:
                self._connection = await asyncpg.connect(self._dsn, timeout=ANSWER_SECONDS)
            rows = await self._connection.fetch(OPEN_RUNS, self._oldest, timeout=ANSWER_SECONDS)
        except ASYNCPG_ERRORS as error:
            if self._connection is not None:
                self._connection.terminate()
            self._connection = None
            raise Unavailable(str(error)) from error
        if rows:
            self._oldest = str(rows[0][0])
        return len(rows)


async def patiently(operation: Callable[[], Awaitable[T]]) -> T:
    """Try until the store takes it."""
    while True:
        try:
            return await operation()
        except Unavailable:
            await asyncio.sleep(WAIT_SECONDS)


async def _main(chosen: argparse.Namespace) -> None:
    store = PostgresStore(chosen.store)
    bus = open_bus(chosen.bus)
    with chosen.accepted.open("a") as accepted:
        load = Load(store, bus, chosen.seed, chosen.open, accepted)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, load.stopping.set)
        await load.run(OpenRuns(chosen.store).count)
    await bus.close()
    await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.load", description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--bus", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--open", type=int, default=400, help="runs to keep open")
    parser.add_argument("--accepted", type=Path, required=True, help="where to write them down")
    asyncio.run(_main(parser.parse_args()))
