"""The whole system on a store that may hold work already, and batches of jobs through it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.batches import Batches
from bench.shapes import job
from bench.stage import Stage
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RUN_ENDED, RunState
from tidemill.engine.runs import StartRequest, start
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.settings import Settings

LOOK_SECONDS = 0.005
BATCH_SECONDS_MAX = 300.0


@asynccontextmanager
async def serving(address: StoreAddress) -> AsyncIterator[Embedded]:
    """Started as `tidemill up` is, with product defaults: what it finds queued, it runs."""
    settings = Settings(store=address, bus="memory:", auth="single-user")
    async with Embedded(settings, resume=None) as system:
        await system.workers_ready()
        yield system


def started_with(system: Embedded) -> dict[str, int]:
    """What the product was started with, to be recorded."""
    return {"workers": system.settings.workers, "slots": system.settings.slots}


async def run_batch(system: Embedded, count: int) -> float:
    """Seconds from the wish for so many jobs to the end of the last one.

    One row is looked at, by its key: a list of open runs would cost the store more and more while
    somebody holds a snapshot. The last ones of a batch may overlap the first ones of the next.
    """
    begin = time.perf_counter()
    requests = [StartRequest(workflow=job())] * count
    started = await start(system.store, system.bus, system.entropy, requests)
    await until_succeeded(system, started[-1].run_id)
    return time.perf_counter() - begin


async def note_batch(stage: Stage, done: Batches, system: Embedded, count: int) -> None:
    """Run a batch, add it to those done, and tell how it went."""
    done.note(count, await run_batch(system, count))
    stage.say(f"{done.count:,} finished {done.name}, {done.rates[-1]:,.0f} tasks per second")


async def until_succeeded(system: Embedded, run_id: RunId) -> None:
    """Wait for the end of a run; RuntimeError when it is a bad one."""
    async with asyncio.timeout(BATCH_SECONDS_MAX):
        while True:
            system.check()
            run = await system.store.reader.run("default", run_id)
            if run.state in RUN_ENDED:
                break
            await asyncio.sleep(LOOK_SECONDS)
    if run.state is not RunState.SUCCEEDED:
        raise RuntimeError(f"run {run_id} is {run.state}: {run.reason}")
