"""`footprint`: how long it takes to begin, how much memory is held, how much an install weighs.

Memory is PSS, summed over the processes: pages that several share count once in all. `up` is one
serving process and one worker process; roles apart are one process each, on PostgreSQL. Idle means
some seconds after the start. With 100,000 queued, nobody serves the queue in which they wait, and
all the roles know of them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.filling import filling
from bench.first_run import seconds_of_hello, tidemill_up
from bench.install import measure_install
from bench.memory import Memory, memory_of
from bench.results import Sample
from bench.stage import Stage
from tests.deployment import Deployment, RoleProcess
from tidemill.runtime.addresses import StoreAddress

ROOT = Path(__file__).resolve().parents[2]
STARTS = 10
QUEUED = 100_000
SETTLE_SECONDS = 6.0
ELSEWHERE = ("--queues", "elsewhere")


async def measure_footprint(stage: Stage) -> list[Sample]:
    """Seconds, milliseconds, mebibytes and megabytes; what needs no store is measured once."""
    stage.settings |= {"queued": QUEUED, "memory": "PSS"}
    async with stage.fresh_store() as (address, settings):
        stage.settings |= settings
        embedded = address.path is not None
    samples = await _first_runs(stage)
    samples += await _up(stage)
    samples += _commands(stage) + measure_install(stage) if embedded else await _roles(stage)
    return samples


@asynccontextmanager
async def _untouched(stage: Stage) -> AsyncIterator[StoreAddress]:
    """A store as its first user finds it: of a file not even the beginning is there."""
    async with stage.fresh_store() as (address, _):
        path = address.path
        yield address if path is None else StoreAddress(path=path.with_name("untouched.db"))


async def _first_runs(stage: Stage) -> list[Sample]:
    up, hello = list[float](), list[float]()
    for _ in range(stage.repeats):
        async with _untouched(stage) as address:
            with tidemill_up(address) as process:
                up.append(await process.seconds_to_first_run())
        async with _untouched(stage) as address:
            hello.append(await asyncio.to_thread(seconds_of_hello, address))
        stage.say(f"{up[-1]:.2f} s to the first run of `up`, {hello[-1]:.2f} s for `run`")
    return [Sample("first_run_seconds", "s", up), Sample("run_hello_seconds", "s", hello)]


async def _up(stage: Stage) -> list[Sample]:
    idle, queued = list[Memory](), list[Memory]()
    for _ in range(1 if stage.quick else stage.repeats):
        async with _untouched(stage) as address:
            idle.append(await _memory_of_up(address))
        async with _untouched(stage) as address:
            async with filling(address) as filler:
                await filler.fill(QUEUED)
            queued.append(await _memory_of_up(address))
        stage.say(f"`up` holds {idle[-1].resident:.0f} MiB, {queued[-1].resident:.0f} with a queue")
    return [*_memory_samples("idle", idle), *_memory_samples("queued", queued)]


async def _memory_of_up(address: StoreAddress) -> Memory:
    with tidemill_up(address, ELSEWHERE) as process:
        await process.until_serving()
        await asyncio.sleep(SETTLE_SECONDS)
        return memory_of([process.pid])


async def _roles(stage: Stage) -> list[Sample]:
    """Each role apart; measured once for all: memory hardly differs from start to start."""
    async with stage.fresh_store() as (address, _), filling(address) as filler:
        assert address.dsn is not None
        with (
            tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
            Deployment(Path(name), address.dsn, address.dsn) as roles,
        ):
            processes = await _start(roles)
            idle = _memories(processes)
            await filler.fill(QUEUED)
            await filler.tidy()
            await asyncio.sleep(SETTLE_SECONDS)
            queued = _memories(processes)
    stage.say(", ".join(f"{role} {one.resident:.0f} MiB" for role, one in idle.items()))
    return [
        sample
        for when, found in (("idle", idle), ("queued", queued))
        for role, memory in found.items()
        for sample in _memory_samples(when, [memory], role)
    ]


async def _start(roles: Deployment) -> dict[str, RoleProcess]:
    processes = {"scheduler": roles.add_scheduler(), "notifier": roles.add_notifier()}
    processes |= {"api": roles.add_api(), "worker": roles.add_worker(*ELSEWHERE)}
    roles.start()
    for address in (*roles.addresses, *roles.api_addresses):
        await asyncio.to_thread(roles.until_listening, address)
    await asyncio.sleep(SETTLE_SECONDS)
    return processes


def _memories(processes: Mapping[str, RoleProcess]) -> dict[str, Memory]:
    return {role: memory_of([process.pid]) for role, process in processes.items()}


def _memory_samples(when: str, found: Sequence[Memory], role: str = "") -> list[Sample]:
    settings = {"processes": found[0].processes}
    resident, rss = [one.resident for one in found], [one.rss for one in found]
    return [
        Sample(f"resident_mib_{when}", "MiB", resident, variant=role, settings=settings),
        Sample(f"rss_mib_{when}", "MiB", rss, variant=role, settings=settings),
    ]


def _commands(stage: Stage) -> list[Sample]:
    empty = _milliseconds(stage, [sys.executable, "-c", "pass"])
    imported = _milliseconds(stage, [sys.executable, "-c", "import tidemill"])
    stage.say(f"{min(imported):.0f} ms to import, of which Python itself {min(empty):.0f} ms")
    helped = _milliseconds(stage, [str(Path(sys.executable).with_name("tidemill")), "--help"])
    stage.say(f"{min(helped):.0f} ms for the help")
    stage.settings |= {"python_itself_ms": round(min(empty), 1)}
    return [Sample("import_ms", "ms", imported), Sample("help_ms", "ms", helped)]


def _milliseconds(stage: Stage, command: list[str]) -> list[float]:
    taken = list[float]()
    for _ in range(max(stage.repeats, STARTS)):
        begin = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        taken.append((time.perf_counter() - begin) * 1_000)
    return taken
