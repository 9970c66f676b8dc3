"""`backlog`: tasks claimed and finished per second while 1,000 and while 1,000,000 are queued.

Queued jobs are filled in by SQL, then a system of product defaults works on them. For each thousand
that has ended another thousand is queued, by SQL as well, so that as many wait as before, behind
those that a worker has in hand. Windows of 20,000 count, one after the other. Then, with the
million, a foreign transaction takes a snapshot and holds it for minutes; the last windows before
its end count. Times are those that the store recorded with the ended runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.filling import Filler, filling
from bench.foreign import foreign_snapshot
from bench.results import Sample
from bench.serving import serving, started_with
from bench.stage import Stage
from tidemill.ports.bus import Hint
from tidemill.runtime.embedded import Embedded
from tidemill.worker.ahead import AHEAD_MAX, AHEAD_PER_SLOT

FEW = 1_000
MANY = 1_000_000
IN_HAND = AHEAD_MAX + AHEAD_MAX // AHEAD_PER_SLOT  # by a worker, when tasks are short
STEP = 1_000
WINDOW = 20_000
WINDOW_QUICK = 2_000
WARM = 1_000
HOLD_SECONDS = 120.0
HOLD_SECONDS_QUICK = 20.0
WAIT_SECONDS_MAX = 300.0
LOOK_SECONDS = 0.02
TELL_SECONDS = 1.0


async def measure_backlog(stage: Stage) -> list[Sample]:
    """Rates with few and with many queued, and what a claim costs more."""
    window = WINDOW_QUICK if stage.quick else WINDOW
    hold = HOLD_SECONDS_QUICK if stage.quick else HOLD_SECONDS
    stage.settings |= {"window": window, "snapshot_seconds": hold}
    async with _queue(stage, FEW) as queue:
        few = await _rates(stage, queue, WARM, window)
    async with _queue(stage, MANY) as queue:
        many = await _rates(stage, queue, WARM, window)
        async with foreign_snapshot(queue.filler.template.address):
            await _hold(stage, queue, hold, least=window * stage.repeats)
            last = await queue.filler.finished()
        held = await _rates(stage, queue, last - window * stage.repeats - 1, window)
    return [
        Sample("tasks_per_second", "1/s", few, variant=f"{FEW}"),
        Sample("tasks_per_second", "1/s", many, variant=f"{MANY}"),
        Sample("claim_ratio", "ratio", _ratios(few, many)),
        Sample("tasks_per_second", "1/s", held, variant=f"{MANY}-snapshot"),
        Sample("claim_ratio", "ratio", _ratios(few, held), variant=f"{MANY}-snapshot"),
    ]


def _ratios(few: Sequence[float], many: Sequence[float]) -> list[float]:
    """Time per claimed task of the one in times of the other."""
    return [one / other for one, other in zip(few, many, strict=True)]


class Queue:
    """A system at work, and jobs that wait for it: about as many at any time."""

    def __init__(self, system: Embedded, filler: Filler, unfinished: int) -> None:
        self.filler = filler
        self._system = system
        self._unfinished = unfinished

    async def top_up(self) -> None:
        """Queue more if enough have ended."""
        self._system.check()
        while await self.filler.ended_at(self.filler.count - self._unfinished) is not None:
            await self.filler.fill(STEP)
            await self._system.bus.send_hint(Hint(lanes=(self.filler.template.lane,)))

    async def ended_at(self, number: int) -> int:
        """When a job has ended; waits for it."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while (moment := await self.filler.ended_at(number)) is None:
                await self.top_up()
                await asyncio.sleep(LOOK_SECONDS)
        return moment


@asynccontextmanager
async def _queue(stage: Stage, waiting: int) -> AsyncIterator[Queue]:
    count = waiting + IN_HAND
    async with stage.fresh_store() as (address, settings), filling(address) as filler:
        begin = time.perf_counter()
        await filler.fill(count)
        await filler.tidy()
        stage.say(f"{count:,} jobs queued in {time.perf_counter() - begin:.0f} s")
        async with serving(address) as system:
            stage.settings |= settings | started_with(system)
            yield Queue(system, filler, count)


async def _rates(stage: Stage, queue: Queue, first: int, window: int) -> list[float]:
    """Tasks per second of windows, one behind the other."""
    rates = list[float]()
    for start in range(first, first + window * stage.repeats, window):
        begin, end = [await queue.ended_at(number) for number in (start, start + window)]
        rates.append(window * 1_000_000 / (end - begin))
        stage.say(f"{rates[-1]:,.0f} tasks per second behind the first {start:,}")
    return rates


async def _hold(stage: Stage, queue: Queue, seconds: float, least: int) -> None:
    """Let it work under the snapshot, for so long and so much at least."""
    begin = told = time.perf_counter()
    finished = before = await queue.filler.finished()
    while time.perf_counter() - begin < seconds or finished - before < least:
        if time.perf_counter() - begin > WAIT_SECONDS_MAX:
            raise RuntimeError(f"only {finished - before:,} tasks finished under a snapshot")
        await queue.top_up()
        await asyncio.sleep(LOOK_SECONDS)
        if time.perf_counter() - told >= TELL_SECONDS:
            told = time.perf_counter()
            finished = await queue.filler.finished()
            stage.say(f"{finished - before:,} finished under a snapshot")
