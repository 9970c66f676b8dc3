"""`load`: the three load tests over HTTP against a `tidemill up` of their own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from bench.load.loads import LOADS, Load
from bench.load.running import CannotBegin, Effort, Tell, probe, run_load
from bench.load.showing import progress_line
from bench.load.tally import Tally
from bench.load.wire import Target
from bench.results import Sample
from bench.stage import Stage
from tests.deployment import PROGRAM, RoleProcess
from tests.servers.process import free_port

COUNT_QUICK = 1_000
START_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.1
TELL_EVERY = 10  # seconds between two lines


async def measure_load(stage: Stage) -> list[Sample]:
    """Tasks and submissions per second, and dead letters against what chance would have.

    Each load runs once, one after the other on one store, as a day of work would leave it. The
    flaky one takes at least the three seconds that its retries wait: a quick one does little else.
    """
    samples = list[Sample]()
    async with _serving(stage) as target:
        for name, load in LOADS.items():
            sized = replace(load, count=COUNT_QUICK) if stage.quick else load
            tally = await run_load(target, sized, Effort.usual(sized), _now_and_then(stage))
            if complaints := tally.complaints():
                raise RuntimeError(f"{load.name}: {'; '.join(complaints)}")
            samples += _samples(name, sized, tally)
    return samples


def _samples(name: str, load: Load, tally: Tally) -> list[Sample]:
    expected = tally.expectation
    settings = {load.noun: load.count, "tasks_each": load.tasks_each, "bulk": load.bulk}
    figures = (
        ("tasks_per_second", "1/s", tally.tasks_per_second),
        ("submits_per_second", "1/s", tally.submits_per_second),
        ("dead_letters", "", float(tally.failed)),
        ("dead_letters_expected", "", expected.expected),
    )
    return [
        Sample(metric, unit, [value], variant=name, settings=settings)
        for metric, unit, value in figures
    ]


def _now_and_then(stage: Stage) -> Tell:
    """Progress without a line for each second: some loads take minutes."""
    told = 0.0

    def tell(tally: Tally) -> None:
        nonlocal told
        if tally.exact or tally.seconds >= told + TELL_EVERY:
            told = tally.seconds
            stage.say(f"{tally.load.name:18} {progress_line(tally)}")

    return tell


@asynccontextmanager
async def _serving(stage: Stage) -> AsyncIterator[Target]:
    """`tidemill up` on an empty store, with product defaults."""
    async with stage.fresh_store() as (address, settings):
        stage.settings |= settings
        listen = f"127.0.0.1:{free_port()}"
        with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
            # As somebody has it who starts for the first time: no file, not even an empty one.
            store = address.dsn or str(Path(folder) / "served.db")
            options = ("--store", store, "--listen", listen)
            up = RoleProcess("up", [*PROGRAM, "up", *options], Path(folder))
            up.start()
            try:
                target = Target.of(f"http://{listen}")
                await _until_serving(up, target)
                yield target
            finally:
                up.terminate()
                await asyncio.to_thread(up.wait)


async def _until_serving(up: RoleProcess, target: Target) -> None:
    async with asyncio.timeout(START_SECONDS_MAX):
        while not await _serves(target):
            if not up.running:
                raise RuntimeError(f"`tidemill up` has ended: {up.text()}")
            await asyncio.sleep(LOOK_SECONDS)


async def _serves(target: Target) -> bool:
    try:
        await probe(target)
    except CannotBegin:
        return False
    return True
