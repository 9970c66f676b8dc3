"""Schedulers, workers and notifiers that come and go under load, with settings as by default."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from tests.process.cluster import Cluster, a_cluster, ask, calls, relayed, seen, seen_async
from tests.servers.process import free_port
from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RunState
from tidemill.domain.task_run import Reason
from tidemill.domain.workflow import TaskSpec

RecordProperty = Callable[[str, object], None]
PAUSE_SECONDS_MAX = 8.0
TAKEOVER_SECONDS_MAX = 2.0
CHAIN = (
    TaskSpec(id="first", executor="noop"),
    TaskSpec(id="second", executor="noop", depends_on=("first",)),
)
ENDED_AT = "SELECT ended_at FROM run WHERE ended_at IS NOT NULL ORDER BY ended_at"
SPENT = "SELECT count(*) FROM task WHERE failures + losses > 0"
REASONS = "SELECT DISTINCT reason FROM attempt"
STATES = "SELECT DISTINCT state FROM run"


@pytest.fixture
async def cluster(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    """Two schedulers."""
    async with a_cluster(postgres_dsn, tmp_path) as cluster:
        await asyncio.gather(cluster.scheduler(), cluster.scheduler())
        yield cluster


@contextlib.asynccontextmanager
async def steady_load(cluster: Cluster, *tasks: TaskSpec) -> AsyncIterator[list[RunId]]:
    """A few runs ten times a second, until the block ends; then waits for all of them to end."""
    begun: list[RunId] = []
    enough = asyncio.Event()

    async def submit() -> None:
        while not enough.is_set():
            with contextlib.suppress(Unavailable):
                begun.extend(await cluster.begin(*(tasks or CHAIN), count=3))
            await asyncio.sleep(0.1)

    submitting = asyncio.create_task(submit())
    try:
        yield begun
    finally:
        enough.set()  # not cancelled: a commit under way would begin runs that nobody waits for
        await submitting
    for run_id in begun:
        await cluster.until_ended(run_id)


async def longest_pause(cluster: Cluster) -> float:
    """The longest time in which no run ended, among those that ended."""
    moments = [int(str(moment)) for moment in await ask(cluster, ENDED_AT)]
    return max(after - before for before, after in pairwise(moments)) / 1e6


@pytest.mark.alone
async def test_after_kill_9_of_a_scheduler_what_runs_goes_on_unspent_and_progress_pauses_briefly(
    cluster: Cluster, record_property: RecordProperty
) -> None:
    first = await cluster.worker(first=0)
    second = await cluster.worker(first=1)
    gate = cluster.roles.folder / "gate"
    waiting = [calls("wait_for", f"waits-{n}", gate=str(gate)) for n in range(8)]
    [run_id] = await cluster.begin(*waiting)
    await cluster.marks(len(waiting))

    async with steady_load(cluster):
        await asyncio.sleep(1)
        cluster.roles.schedulers[0].kill()
        await cluster.until_connected(first, "scheduler-2")
        await asyncio.sleep(1)
    gate.touch()
    await cluster.until_ended(run_id)

    pause = await longest_pause(cluster)
    record_property("pause_seconds", round(pause, 2))
    assert pause <= PAUSE_SECONDS_MAX
    assert second.running
    assert await ask(cluster, SPENT) == [0]
    tasks = await cluster.store.reader.tasks("default", run_id, -1, 100)
    assert {task.epoch for task in tasks} == {1}
    assert len(await cluster.marks(1)) == len(waiting)


async def test_a_rolling_restart_of_everything_under_load_costs_no_attempt(
    cluster: Cluster,
) -> None:
    await asyncio.gather(*(cluster.worker("--grace", "5", first=place) for place in (0, 1)))
    short, long = calls("nap", "short", seconds=0.05), calls("nap", "long", seconds=1)

    async with steady_load(cluster, short, long) as begun:
        for number, scheduler in enumerate(cluster.roles.schedulers):
            scheduler.terminate()
            assert await asyncio.to_thread(scheduler.wait) == 0
            scheduler.start()
            await cluster.until_listening(number)
        for worker in cluster.roles.workers:
            worker.terminate()
            assert await asyncio.to_thread(worker.wait) == 0
            worker.start()
            await cluster.until_connected(worker)

    assert len(begun) > 30
    assert await ask(cluster, STATES) == [RunState.SUCCEEDED]
    assert await ask(cluster, SPENT) == [0]
    assert set(await ask(cluster, REASONS)) <= {Reason.RELEASED}


def stands_by(health: str) -> bool:
    """Whether a notifier is ready and lets another one lead."""
    try:
        answer = httpx.get(f"http://{health}/ready", timeout=5)
    except httpx.TransportError:
        return False
    return answer.is_success and "relay: another one leads" in answer.text


@pytest.mark.alone
async def test_another_notifier_takes_over_within_two_seconds(
    cluster: Cluster, record_property: RecordProperty
) -> None:
    await cluster.worker()
    health = f"127.0.0.1:{free_port()}"
    leader = cluster.roles.add_notifier()
    standby = cluster.roles.add_notifier("--health", health)
    leader.start()
    await cluster.begin(*CHAIN)
    await seen_async(lambda: relayed(cluster))
    standby.start()
    await seen(lambda: stands_by(health))  # its start is not what is measured

    leader.kill()
    killed_at = time.monotonic()
    await cluster.begin(*CHAIN)
    await seen_async(lambda: relayed(cluster))

    takeover = time.monotonic() - killed_at
    record_property("takeover_seconds", round(takeover, 2))
    assert takeover < TAKEOVER_SECONDS_MAX
