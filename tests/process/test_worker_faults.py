"""The faults of a worker, each on real processes: a scheduler and workers of their own.

docs/reliability.md lists them by number. Sessions live a third as long as by default.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from tests.deployment import ROOT, RoleProcess
from tests.process.cluster import QUICK, QUICK_PINGS, Cluster, a_cluster, calls, seen
from tests.process.cluster import seen_async as seen_later
from tidemill.domain.run import RunState
from tidemill.domain.task_run import Reason, TaskState
from tidemill.domain.workflow import RetryPolicy, Timeouts

RecordProperty = Callable[[str, object], None]
LEASE_SECONDS = 2.0
DEFAULT_LEASE_SECONDS = 6.0
ONCE = RetryPolicy(max_retries=0)
AT_ONCE = RetryPolicy(max_retries=1, base_seconds=0)
MEBIBYTE = 1024 * 1024


@pytest.fixture
async def cluster(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    """One scheduler with short sessions."""
    async with a_cluster(postgres_dsn, tmp_path) as cluster:
        await cluster.scheduler(*QUICK)
        yield cluster


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    """What tasks do outside."""
    return tmp_path / "effects"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def a_worker(cluster: Cluster, *options: str) -> None:
    await cluster.worker(*QUICK_PINGS, *options)


async def test_fault_01_killed_after_its_side_effect_a_task_runs_again_under_the_same_key(
    postgres_dsn: str, tmp_path: Path, effects: Path, record_property: RecordProperty
) -> None:
    async with a_cluster(postgres_dsn, tmp_path) as cluster:  # with sessions as by default
        await cluster.scheduler()
        await cluster.worker()
        await cluster.worker()
        run_id = await cluster.begin_one("errand", effects=str(effects), hang="after")
        await seen(lambda: _lines(effects))
        [first] = await cluster.marks(1)

        cluster.worker_of(first).kill()
        killed_at = time.time()
        [_, second] = await cluster.marks(2)
        record_property("recovery_seconds", round(second.at - killed_at, 2))
        run = await cluster.until_ended(run_id)
        task = await cluster.task(run_id)

    assert second.at - killed_at < 10
    assert second.pid != first.pid
    assert _lines(effects) == [f"{first.key} 1", f"{first.key} 2"]
    assert (run.state, task.epoch, task.losses, task.failures) == (RunState.SUCCEEDED, 2, 1, 0)


async def test_fault_02_killed_before_its_side_effect_a_task_has_it_once(
    cluster: Cluster, effects: Path
) -> None:
    await a_worker(cluster)
    await a_worker(cluster)
    run_id = await cluster.begin_one("errand", effects=str(effects), hang="before")
    [first] = await cluster.marks(1)

    cluster.worker_of(first).kill()
    await cluster.until_ended(run_id, 3 * LEASE_SECONDS)

    assert _lines(effects) == [f"{first.key} 2"]


async def test_fault_03_stopped_for_three_leases_a_worker_s_late_report_changes_nothing(
    cluster: Cluster,
) -> None:
    await a_worker(cluster)
    gate = cluster.roles.folder / "gate"
    run_id = await cluster.begin_one("wait_for", gate=str(gate))
    [first] = await cluster.marks(1)
    stopped = cluster.worker_of(first)
    stopped.pause()
    await seen(lambda: psutil.Process(stopped.pid).status() == psutil.STATUS_STOPPED)
    paused_at = time.monotonic()
    gate.touch()
    await a_worker(cluster)
    await cluster.until_ended(run_id)
    before = await cluster.task(run_id)

    await seen(lambda: time.monotonic() - paused_at >= 3 * LEASE_SECONDS)
    stopped.resume()
    await cluster.until_connected(stopped)
    await seen_later(lambda: _is_served_by(cluster, stopped.name))

    assert await cluster.task(run_id) == before
    assert (before.epoch, before.losses) == (2, 1)
    assert await cluster.result(run_id) == 2


async def _is_served_by(cluster: Cluster, name: str) -> bool:
    sessions = await cluster.store.reader.sessions("default")
    return any(session.worker == name for session in sessions)


async def test_fault_04_stopped_for_less_than_a_lease_a_worker_keeps_its_task(
    postgres_dsn: str, tmp_path: Path
) -> None:
    async with a_cluster(postgres_dsn, tmp_path) as cluster:  # with sessions as by default
        await cluster.scheduler()
        await cluster.worker()
        await cluster.worker()
        run_id = await cluster.begin_one("nap", seconds=3)
        [first] = await cluster.marks(1)

        cluster.worker_of(first).pause()
        await seen(lambda: time.time() - first.at > DEFAULT_LEASE_SECONDS / 3)
        cluster.worker_of(first).resume()
        await cluster.until_ended(run_id)
        task = await cluster.task(run_id)
        marks = await cluster.marks(1)

    assert (task.epoch, task.losses, task.failures) == (1, 0, 0)
    assert len(marks) == 1


async def test_fault_05_a_deadlocked_task_is_timed_out_while_its_worker_pings_on(
    cluster: Cluster,
) -> None:
    await a_worker(cluster)
    stuck = calls("deadlock", "stuck", retry=ONCE, timeouts=Timeouts(attempt_seconds=1))
    [run_id] = await cluster.begin(stuck, calls("nap", "neighbour", seconds=2.5))

    await cluster.until_ended(run_id)

    task, neighbour = await cluster.task(run_id, 0), await cluster.task(run_id, 1)
    assert (task.state, task.reason) == (TaskState.FAILED, Reason.TIMEOUT)
    assert (neighbour.state, neighbour.epoch) == (TaskState.SUCCEEDED, 1)


async def test_fault_06_a_task_that_starves_the_event_loop_loses_its_lease_cleanly(
    cluster: Cluster,
) -> None:
    await a_worker(cluster)
    run_id = await cluster.begin_one("spin", seconds=3 * LEASE_SECONDS)
    [first] = await cluster.marks(1)
    await a_worker(cluster)

    run = await cluster.until_ended(run_id)

    task = await cluster.task(run_id)
    assert (run.state, task.epoch, task.losses) == (RunState.SUCCEEDED, 2, 1)
    assert [mark.epoch for mark in await cluster.marks(2)] == [1, 2]
    assert cluster.worker_of(first).running


async def test_fault_07_a_child_killed_for_memory_is_one_failed_attempt_that_says_so(
    cluster: Cluster,
) -> None:
    await a_worker(cluster)
    child = calls("killed_for_memory", params={"isolation": "process"}, retry=AT_ONCE)
    [run_id] = await cluster.begin(child)

    await cluster.until_ended(run_id)

    task = await cluster.task(run_id)
    assert (task.failures, task.losses, task.reason) == (2, 0, Reason.EXHAUSTED)
    assert task.error is not None
    assert "killed by SIGKILL; perhaps the machine ran out of memory" in task.error.message
    assert cluster.roles.workers[0].starts == 1


@pytest.mark.parametrize(
    ("function", "isolation"), [("ignore_the_signal", "process"), ("ignore_the_cancel", "thread")]
)
async def test_fault_08_a_task_that_ignores_its_cancel_is_cancelled_once_all_the_same(
    cluster: Cluster, function: str, isolation: str
) -> None:
    await a_worker(cluster)
    [run_id] = await cluster.begin(calls(function, params={"isolation": isolation}))
    [mark] = await cluster.marks(1)

    await cluster.cancel(run_id)
    run = await cluster.until_ended(run_id)

    task = await cluster.task(run_id)
    assert (run.state, task.state, task.epoch) == (RunState.CANCELLED, TaskState.CANCELLED, 1)
    if isolation == "process":
        await seen(lambda: not psutil.pid_exists(mark.pid))


async def test_fault_09_a_terminated_worker_finishes_or_hands_back_and_spends_nothing(
    cluster: Cluster,
) -> None:
    await a_worker(cluster, "--grace", "2")
    short, long = calls("nap", "short", seconds=1), calls("wait_for", "long", gate="gate")
    [run_id] = await cluster.begin(short, long)
    await cluster.marks(2)
    await a_worker(cluster)

    leaving = cluster.roles.workers[0]
    leaving.terminate()
    assert leaving.wait() == 0
    (cluster.roles.folder / "gate").touch()
    await cluster.until_ended(run_id)

    first, second = await cluster.task(run_id, 0), await cluster.task(run_id, 1)
    assert (first.epoch, first.failures, first.losses) == (1, 0, 0)
    assert (second.epoch, second.failures, second.losses) == (2, 0, 0)
    assert [one.reason for one in await cluster.attempts(run_id, 1)] == [Reason.RELEASED]


async def test_fault_10_a_result_of_a_gigabyte_is_a_typed_failure_and_nobody_chokes_on_it(
    postgres_dsn: str, tmp_path: Path
) -> None:
    async with a_cluster(postgres_dsn, tmp_path) as cluster:  # with sessions as by default:
        await cluster.scheduler()  # making a gigabyte holds all threads of the worker up
        await cluster.worker()
        run_id = await cluster.begin_one("huge")
        await cluster.until_ended(run_id)
        after = await cluster.begin_one("nap", seconds=0)
        await cluster.until_ended(after)
        task = await cluster.task(run_id)
        processes = (*cluster.roles.schedulers, *cluster.roles.workers)
        memory = [psutil.Process(one.pid).memory_info().rss // MEBIBYTE for one in processes]

    assert task.error is not None
    assert (task.state, task.failures, task.error.type) == (TaskState.FAILED, 1, "ResultTooLarge")
    assert max(memory) < 300


async def test_fault_11_a_result_that_cannot_be_written_is_a_typed_failure_and_others_go_on(
    cluster: Cluster,
) -> None:
    await a_worker(cluster)
    kinds = ("object", "number", "text")
    wrong = [calls("wrong", kind, kind=kind) for kind in kinds]
    [run_id] = await cluster.begin(*wrong, calls("nap", "neighbour", seconds=0))

    await cluster.until_ended(run_id)

    tasks = [await cluster.task(run_id, position) for position in range(4)]
    assert [task.failures for task in tasks] == [1, 1, 1, 0]
    assert {task.error.type for task in tasks if task.error} == {"ResultNotSerializable"}
    assert tasks[3].state is TaskState.SUCCEEDED


CLOCK_THAT_IS_WRONG = """
import os, time
_wrong_by = int(os.environ["WRONG_BY"])
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _wrong_by
time.time_ns = lambda: _time_ns() + _wrong_by * 10**9
"""


@pytest.mark.parametrize("wrong_by", [3_600, -3_600])
async def test_fault_12_a_worker_whose_clock_is_an_hour_off_keeps_its_lease(
    cluster: Cluster, tmp_path: Path, wrong_by: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(CLOCK_THAT_IS_WRONG)
    right = cluster.roles.environment
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    cluster.roles.environment = {**right, "PYTHONPATH": path, "WRONG_BY": str(wrong_by)}
    await a_worker(cluster)
    run_id = await cluster.begin_one("nap", seconds=1.5 * LEASE_SECONDS)
    [mark] = await cluster.marks(1)
    cluster.roles.environment = right
    await a_worker(cluster)

    await cluster.until_ended(run_id)

    task = await cluster.task(run_id)
    assert abs(mark.at - time.time() - wrong_by) < 60
    assert (task.epoch, task.losses) == (1, 0)
    assert len(await cluster.marks(1)) == 1


async def test_fault_13_a_worker_whose_token_is_revoked_is_kept_out_and_its_task_runs_elsewhere(
    postgres_dsn: str, tmp_path: Path, effects: Path
) -> None:
    known, old, new = (tmp_path / name for name in ("known", "old", "new"))
    for path, text in ((known, "old-token\nnew-token\n"), (old, "old-token"), (new, "new-token")):
        path.write_text(text)
    async with a_cluster(postgres_dsn, tmp_path) as cluster:
        await cluster.scheduler(*QUICK, "--token-file", str(known))
        await a_worker(cluster, "--token-file", str(old))
        run_id = await cluster.begin_one("errand", effects=str(effects), hang="after")
        [first] = await cluster.marks(1)
        await a_worker(cluster, "--token-file", str(new))

        known.write_text("new-token\n")
        revoked = cluster.worker_of(first)
        await _reconnect(revoked)
        run = await cluster.until_ended(run_id)
        task = await cluster.task(run_id)
        [_, second] = await cluster.marks(2)

    assert (run.state, task.epoch, task.losses) == (RunState.SUCCEEDED, 2, 1)
    assert second.pid != first.pid
    assert "refused the token" in revoked.text()


async def _reconnect(worker: RoleProcess) -> None:
    """Stop a worker for as long as makes the scheduler hang up, but not for a lease."""
    worker.pause()
    stopped_at = time.monotonic()
    await seen(lambda: time.monotonic() - stopped_at > LEASE_SECONDS * 0.7)
    worker.resume()
