"""Roles apart on a real PostgreSQL: who runs what, how they end, and how they say they are."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from tests.process.cluster import Cluster, a_cluster, calls, seen_async
from tests.servers.process import free_port
from tidemill.domain.run import RunState
from tidemill.domain.task_run import TaskState
from tidemill.runtime.health import HealthAnswer, ask_health


@pytest.fixture
async def cluster(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with a_cluster(postgres_dsn, tmp_path) as cluster:
        yield cluster


async def health_with(endpoint: str, words: str) -> HealthAnswer:
    """The health of a role as soon as it says this, among its reasons or notes."""

    async def look() -> HealthAnswer | None:
        try:
            answer = await ask_health(endpoint)
        except OSError:
            return None
        return answer if words in (*answer.reasons, *answer.notes) else None

    return await seen_async(look)


async def test_tasks_go_only_where_queue_and_labels_fit(cluster: Cluster) -> None:
    await cluster.scheduler()
    plain = await cluster.worker()
    heavy = await cluster.worker("--queues", "heavy")
    gpu = await cluster.worker("--queues", "heavy", "--labels", "gpu=a100,zone=eu")
    tasks = {
        "plain": calls("nap", seconds=0),
        "heavy": calls("nap", seconds=0, queue="heavy"),
        "gpu": calls("nap", seconds=0, queue="heavy", labels={"gpu": "a100"}),
        "nowhere": calls("nap", seconds=0, labels={"gpu": "a100"}),
    }

    runs = {name: await cluster.begin(task, count=8) for name, task in tasks.items()}
    for run_id in (*runs["plain"], *runs["heavy"], *runs["gpu"]):
        assert (await cluster.until_ended(run_id)).state is RunState.SUCCEEDED

    marks = await cluster.marks(24)
    ran = {
        name: {cluster.worker_of(mark).name for mark in marks if mark.run_id in run_ids}
        for name, run_ids in runs.items()
    }
    assert (ran["plain"], ran["gpu"]) == ({plain.name}, {gpu.name})
    assert ran["heavy"] <= {heavy.name, gpu.name}
    assert ran["nowhere"] == set()
    assert (await cluster.task(runs["nowhere"][0])).state is TaskState.READY


async def test_sigterm_lets_tasks_finish_and_hands_back_what_does_not(cluster: Cluster) -> None:
    await cluster.scheduler()
    patient = await cluster.worker("--queues", "short", "--grace", "10")
    hasty = await cluster.worker("--queues", "long", "--grace", "0")
    [short] = await cluster.begin(calls("nap", seconds=1, queue="short"))
    [long] = await cluster.begin(
        calls("wait_for", gate="nowhere", queue="long", params={"isolation": "process"})
    )
    await cluster.marks(2)

    patient.terminate()
    hasty.terminate()

    assert (patient.wait(), hasty.wait()) == (0, 0)
    assert (await cluster.until_ended(short)).state is RunState.SUCCEEDED
    task = await cluster.task(long)
    assert (task.state, task.failures, task.losses) == (TaskState.READY, 0, 0)


async def test_a_second_sigterm_ends_a_worker_at_once(cluster: Cluster) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    await cluster.scheduler()
    worker = await cluster.worker("--grace", "60", "--health", endpoint)
    await cluster.begin_one("wait_for", gate="nowhere")
    await cluster.marks(1)

    worker.terminate()
    await health_with(endpoint, "draining")
    worker.terminate()

    assert worker.wait(5) == 128 + signal.SIGTERM


async def test_a_scheduler_that_ends_in_order_costs_no_attempt(cluster: Cluster) -> None:
    first = await cluster.scheduler()
    await cluster.scheduler()
    worker = await cluster.worker(first=0)
    run_id = await cluster.begin_one("nap", seconds=2)
    await cluster.marks(1)

    first.terminate()

    assert first.wait(10) == 0
    await cluster.until_connected(worker, "scheduler-2")
    assert (await cluster.until_ended(run_id)).state is RunState.SUCCEEDED
    task = await cluster.task(run_id)
    assert (task.epoch, task.failures, task.losses) == (1, 0, 0)


async def test_over_tls_only_who_knows_the_token_gets_work(
    cluster: Cluster, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    (tmp_path / "token").write_text("open-sesame\n")
    (tmp_path / "wrong").write_text("open-barley\n")
    tls = ("--tls-cert", "server.pem", "--tls-key", "server.pem", "--token-file", "token")
    await cluster.scheduler(*tls)

    stranger = cluster.roles.add_worker("--tls-ca", "ca.pem", "--token-file", "wrong")
    stranger.start()
    await cluster.worker("--tls-ca", "ca.pem", "--token-file", "token")
    run_id = await cluster.begin_one("nap", seconds=0)

    assert (await cluster.until_ended(run_id)).state is RunState.SUCCEEDED
    assert stranger.wait() == 78
    assert "refused the token" in stranger.text()
    assert "open-" not in "".join(cluster.roles.logs().values())


async def test_every_role_says_how_it_is(cluster: Cluster) -> None:
    endpoints = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    scheduler = await cluster.scheduler("--health", endpoints[0])
    await cluster.worker("--health", endpoints[1])
    notifier = cluster.roles.add_notifier("--health", endpoints[2])
    notifier.start()

    scheduling = await health_with(endpoints[0], "workers: 1 connected")
    working = await health_with(endpoints[1], "tasks: 0 running")
    relaying = await health_with(endpoints[2], "relay: leads")
    scheduler.kill()
    lost = await health_with(endpoints[1], "scheduler: not welcomed by any")

    assert [one.role for one in (scheduling, working, relaying)] == [
        "scheduler",
        "worker",
        "notifier",
    ]
    assert scheduling.ready
    assert working.ready
    assert relaying.ready
    assert not lost.ready


async def test_a_broker_that_is_away_stops_nobody(cluster: Cluster) -> None:
    away, endpoint = f"redis://me:secret@127.0.0.1:{free_port()}/0", f"127.0.0.1:{free_port()}"
    cluster.roles.bus = away
    scheduler = await cluster.scheduler("--health", endpoint)
    await cluster.worker()
    run_id = await cluster.begin_one("nap", seconds=0)

    assert (await cluster.until_ended(run_id)).state is RunState.SUCCEEDED
    shown = away.replace("secret", "***")
    answer = await health_with(
        endpoint, f"bus: {shown} cannot be reached; works on the store alone"
    )
    assert answer.ready
    assert f"bus: {shown} cannot be reached" in scheduler.text()
    assert "secret" not in scheduler.text()
