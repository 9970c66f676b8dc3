"""`backlog`: tasks claimed and finished per second while 1,000 and while 1,000,000 are queued.

Queued jobs are filled in by SQL, then a system of product defaults works on them. The 1,000 are
queued again and again, and only the middle of each thousand counts: neither the start nor the tail.
Of the million, windows of 20,000 count, one after the other, while the rest stays queued. Then a
foreign transaction takes a snapshot and holds it for minutes; the last windows before its end
count. Times are those that the store recorded with the ended runs.
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

FEW = 1_000
MANY = 1_000_000
EDGE = 100  # jobs at either end of a thousand that do not count
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
    few = await _with_few(stage, window)
    many, held = await _with_many(stage, window, hold)
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


async def _with_few(stage: Stage, window: int) -> list[float]:
    rates = list[float]()
    rounds = max(1, window // FEW)
    async with _filled(stage, FEW) as filler, serving(filler.template.address) as system:
        stage.settings |= started_with(system)
        await _ended_at(system, filler, FEW - 1)
        for _ in range(stage.repeats):
            seconds = [await _thousand(system, filler) for _ in range(rounds)]
            rates.append((FEW - 2 * EDGE) * rounds / sum(seconds))
            stage.say(f"{rates[-1]:,.0f} tasks per second with {FEW:,} queued")
    return rates


async def _thousand(system: Embedded, filler: Filler) -> float:
    first = filler.count
    await filler.fill(FEW)
    await system.bus.send_hint(Hint(lanes=(filler.template.lane,)))
    await _ended_at(system, filler, first + FEW - 1)
    return await _seconds(system, filler, first + EDGE, first + FEW - EDGE)


async def _with_many(
    stage: Stage, window: int, hold: float
) -> tuple[Sequence[float], Sequence[float]]:
    async with _filled(stage, MANY) as filler, serving(filler.template.address) as system:
        windows = [(WARM + window * n, WARM + window * (n + 1)) for n in range(stage.repeats)]
        many = [await _rate(stage, system, filler, *one) for one in windows]
        async with foreign_snapshot(filler.template.address):
            await _hold(stage, filler, hold, windows[-1][1] + window * stage.repeats)
            last = await filler.finished()
        starts = [last - window * n for n in range(stage.repeats, 0, -1)]
        held = [await _rate(stage, system, filler, start, start + window - 1) for start in starts]
    return many, held


async def _hold(stage: Stage, filler: Filler, seconds: float, least: int) -> None:
    """Let it work under the snapshot: for so long and so much at least, unless all is done."""
    begin = time.perf_counter()
    finished = before = await filler.finished()
    while time.perf_counter() - begin < seconds or finished < least:
        if finished == filler.count:
            break
        if time.perf_counter() - begin > WAIT_SECONDS_MAX:
            raise RuntimeError(f"only {finished - before:,} tasks finished under a snapshot")
        await asyncio.sleep(TELL_SECONDS)
        finished = await filler.finished()
        stage.say(f"{finished - before:,} finished under a snapshot")


async def _rate(stage: Stage, system: Embedded, filler: Filler, first: int, last: int) -> float:
    rate = (last - first) / await _seconds(system, filler, first, last)
    stage.say(f"{rate:,.0f} tasks per second behind the first {first:,}")
    return rate


async def _seconds(system: Embedded, filler: Filler, first: int, last: int) -> float:
    begin, end = [await _ended_at(system, filler, number) for number in (first, last)]
    return (end - begin) / 1_000_000


async def _ended_at(system: Embedded, filler: Filler, number: int) -> int:
    """When a job has ended; waits for it."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while (moment := await filler.ended_at(number)) is None:
            system.check()
            await asyncio.sleep(LOOK_SECONDS)
    return moment


@asynccontextmanager
async def _filled(stage: Stage, count: int) -> AsyncIterator[Filler]:
    async with stage.fresh_store() as (address, settings), filling(address) as filler:
        stage.settings |= settings
        begin = time.perf_counter()
        await filler.fill(count)
        await filler.tidy()
        stage.say(f"{count:,} jobs queued in {time.perf_counter() - begin:.0f} s")
        yield filler
