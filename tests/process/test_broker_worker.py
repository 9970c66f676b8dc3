"""Workers over a real Kafka and a real Redis, all roles processes of their own."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from confluent_kafka import Consumer as Reader
from confluent_kafka import TopicPartition

from examples.orders.shop import Shop
from tests.contract.broker_stage import take_all
from tests.deployment import ROOT, RoleProcess
from tests.process.cluster import Cluster, a_cluster, calls, relayed, seen_async
from tidemill.buses.kafka_address import parse_kafka_url
from tidemill.domain.run import Run, RunState
from tidemill.engine.runs import StartRequest, start
from tidemill.ports.broker import Broker
from tidemill.runtime.system import SystemEntropy
from tidemill.runtime.wiring import open_broker
from tidemill.sdk.files import load_file

RECOVERY_SECONDS = 25.0
ORDERS = ROOT / "examples" / "orders"
RecordProperty = Callable[[str, object], None]
_numbers = count(1)


@pytest.fixture(params=["kafka", "redis"])
def via(request: pytest.FixtureRequest) -> str:
    """The address of a broker, under a prefix that no other test has."""
    prefix = f"worker{next(_numbers)}"
    url: str = request.getfixturevalue(f"{request.param}_url")
    return f"{url}/{prefix}" if request.param == "kafka" else f"{url}?prefix={prefix}"


@pytest.fixture
async def cluster(postgres_dsn: str, tmp_path: Path, via: str) -> AsyncIterator[Cluster]:
    """A scheduler that serves workers over the broker."""
    async with a_cluster(postgres_dsn, tmp_path) as cluster:
        cluster.roles.via = via
        await cluster.scheduler()
        yield cluster


def ports_of(worker: RoleProcess) -> set[int]:
    """The far ends of a worker's connections."""
    found = psutil.Process(worker.pid).net_connections()
    return {one.raddr.port for one in found if one.raddr}


def port_of(url: str) -> int:
    """The port in the address of a broker."""
    port = urlsplit(url).port
    assert port is not None
    return port


async def test_a_chain_runs_and_the_worker_talks_to_the_broker_alone(
    cluster: Cluster, via: str
) -> None:
    worker = await cluster.worker()

    first = calls("nap", "first", seconds=0)
    second = calls("nap", "second", seconds=0, depends_on=("first",))
    [run_id] = await cluster.begin(first, second)
    run = await cluster.until_ended(run_id)

    assert run.state is RunState.SUCCEEDED
    assert ports_of(worker) == {port_of(via)}


async def test_killed_a_worker_is_replaced_by_another_within_25_seconds(
    cluster: Cluster, record_property: RecordProperty
) -> None:
    workers = [await cluster.worker() for _ in range(2)]
    gate = cluster.roles.folder / "gate"
    run_id = await cluster.begin_one("wait_for", gate=str(gate))
    [mark] = await cluster.marks(1)
    killed = cluster.worker_of(mark)

    killed.kill()
    died_at = time.time()
    marks = await cluster.marks(2)
    gate.touch()
    run = await cluster.until_ended(run_id)

    seconds = marks[1].at - died_at
    record_property("recovery_seconds", seconds)
    assert seconds < RECOVERY_SECONDS
    assert run.state is RunState.SUCCEEDED
    assert (await cluster.task(run_id)).losses == 1
    assert killed in workers


async def test_killed_with_commands_in_hand_a_worker_loses_none_of_them(cluster: Cluster) -> None:
    worker = await cluster.worker("--slots", "8")
    other = await cluster.worker("--slots", "8")
    run_ids = await cluster.begin(calls("nap", seconds=0.2), count=200)

    await cluster.marks(20)
    worker.kill()
    ended = [await cluster.until_ended(run_id, 60) for run_id in run_ids]

    assert {run.state for run in ended} == {RunState.SUCCEEDED}
    assert other.running


async def test_tasks_go_where_queue_and_labels_fit(cluster: Cluster) -> None:
    plain = await cluster.worker()
    mail = await cluster.worker("--queues", "mail")
    gpu = await cluster.worker("--queues", "default,mail", "--labels", "gpu=a100")

    tasks = {
        "default": (calls("nap", seconds=0), {plain.pid, gpu.pid}),
        "mail": (calls("nap", seconds=0, queue="mail"), {mail.pid, gpu.pid}),
        "gpu": (calls("nap", seconds=0, labels={"gpu": "a100"}), {gpu.pid}),
    }
    for number, (task, pids) in enumerate(tasks.values(), 1):
        run_ids = await cluster.begin(task, count=5)
        for run_id in run_ids:
            await cluster.until_ended(run_id)
        marks = await cluster.marks(5 * number)
        assert {mark.pid for mark in marks if mark.run_id in run_ids} <= pids


async def test_a_worker_that_is_asked_to_end_hands_back_what_it_runs(cluster: Cluster) -> None:
    leaving = await cluster.worker("--grace", "0.5")
    gate = cluster.roles.folder / "gate"
    run_id = await cluster.begin_one("wait_for", gate=str(gate))
    await cluster.marks(1)

    leaving.terminate()
    await cluster.worker()
    await cluster.marks(2)
    gate.touch()
    await cluster.until_ended(run_id)

    task = await cluster.task(run_id)
    assert (task.failures, task.losses) == (0, 0)
    assert leaving.wait() == 0


async def test_an_order_goes_over_kafka_alone_and_its_topics_can_be_read(
    postgres_dsn: str, tmp_path: Path, kafka_url: str
) -> None:
    url = f"{kafka_url}/orders{next(_numbers)}"
    with Shop() as shop:
        async with a_cluster(postgres_dsn, tmp_path) as cluster:
            run, talks_to = await an_order(cluster, url, shop.address)
    dump = await dumped(url, ["tasks.default.default", "reports", "events"])

    assert run.state is RunState.SUCCEEDED
    assert talks_to - {port_of(shop.address)} == {port_of(url)}
    about = {
        topic: [event for event in events if event["data"]["run_id"] == run.id]
        for topic, events in dump.items()
    }
    # Commands go round the parts of their topic, to be taken by whoever is free: read by time.
    commands = sorted(about["tasks.default.default"], key=lambda event: str(event["time"]))
    tasks = ["fetch-order", "process-payment", "process-payment", "send-notification", "$output"]
    assert steps(commands) == [f"task.scheduled {task}" for task in tasks]
    assert commands[0]["data"]["run_input"] == {"shop": shop.address, "order_id": "A-1042"}
    first = [event for event in about["reports"] if event["data"]["position"] == 0]
    assert steps(first) == ["task.started", "task.completed"]
    told = steps(about["events"])
    assert (told[0], told[-1]) == ("workflow.started", "workflow.completed")
    for task in ("fetch-order", "send-notification"):
        moves = [step for step in told if step.endswith(task)]
        assert moves == [f"task.{one} {task}" for one in ("ready", "started", "completed")]
    places = [int(event["position"]) for event in about["events"]]
    assert places == sorted(places)


async def an_order(cluster: Cluster, url: str, shop: str) -> tuple[Run, set[int]]:
    """An order on its way, bus and workers over one broker; whom the worker talked to."""
    cluster.roles.via = cluster.roles.bus = url
    await cluster.scheduler()
    cluster.roles.add_notifier().start()
    worker = cluster.roles.add_worker("--import", str(ORDERS / "payments.py"))
    worker.start()
    await cluster.until_connected(worker)
    request = StartRequest(
        workflow=load_file(ORDERS / "orders.yaml").workflow,
        input={"shop": shop, "order_id": "A-1042"},
    )
    [started] = await start(cluster.store, cluster.bus, SystemEntropy(), [request])
    run = await cluster.until_ended(started.run_id, 60)
    talks_to = ports_of(worker)
    await seen_async(lambda: relayed(cluster))
    return run, talks_to


async def dumped(url: str, topics: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Every event of some topics, as a stranger reads them."""
    broker = open_broker(url)
    try:
        return {topic: await _events(broker, topic, _held(url, topic)) for topic in topics}
    finally:
        await broker.close()


async def _events(broker: Broker, topic: str, count: int) -> list[dict[str, Any]]:
    async with broker.consume([topic], f"dump-{topic}") as consumer:
        return [json.loads(message.value) for message in await take_all(consumer, count)]


def _held(url: str, topic: str) -> int:
    """How many messages a topic of Kafka has, now that nobody writes."""
    address = parse_kafka_url(url)
    name = f"{address.prefix}.{topic}"
    reader = Reader({"bootstrap.servers": ",".join(address.servers), "group.id": "count"})
    places = [
        TopicPartition(name, number) for number in reader.list_topics(name).topics[name].partitions
    ]
    marks = [reader.get_watermark_offsets(place) for place in places]
    reader.close()
    return sum(high - low for low, high in marks)


def steps(events: list[dict[str, Any]]) -> list[str]:
    """What happened, in a few words each."""
    return [
        " ".join(
            [
                event["type"].removeprefix("tidemill.").removesuffix(".v1"),
                event["data"].get("task", ""),
            ]
        ).strip()
        for event in events
    ]
