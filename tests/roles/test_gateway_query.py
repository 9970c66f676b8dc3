"""The query service over a real channel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.roles.gateway_stage import Mill, a_mill, a_stranger
from tidemill.domain.events import Failed, Succeeded
from tidemill.domain.task_run import TaskError
from tidemill.domain.workflow import RetryPolicy, TaskSpec
from tidemill.gateway.query import SERVICE
from tidemill.protocol.generated import query_pb2 as wire

NOBODY = "01980000-0000-7000-8000-000000000000"


@pytest.fixture
async def mill() -> AsyncIterator[Mill]:
    async with a_mill() as mill:
        yield mill


class Client:
    """Calls methods by name, as a program in any language would."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def ask(self, method: str, request: Any, answer: type[Any]) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}", type(request).SerializeToString, answer.FromString
        )
        return await call(request, timeout=5)

    def watch(self, run_id: str) -> Any:
        call = self._channel.unary_stream(
            f"/{SERVICE}/WatchRun", wire.WatchRunRequest.SerializeToString, wire.Run.FromString
        )
        return call(wire.WatchRunRequest(run_id=run_id), timeout=10)


@pytest.fixture
async def client(mill: Mill) -> AsyncIterator[Client]:
    async with grpc.aio.insecure_channel(mill.address) as channel:
        yield Client(channel)


@contextmanager
def refused(code: grpc.StatusCode, text: str) -> Iterator[None]:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        yield
    assert (error.value.code(), text in (error.value.details() or "")) == (code, True)


def a_step(name: str = "step", *parents: str) -> TaskSpec:
    once = RetryPolicy(max_retries=1, base_seconds=0)
    return TaskSpec(id=name, executor="do", depends_on=parents, retry=once)


async def test_a_run_is_shown_as_it_stands(mill: Mill, client: Client) -> None:
    run_id = await mill.start(a_step(), name="orders")

    run = await client.ask("GetRun", wire.GetRunRequest(run_id=run_id), wire.Run)

    assert (run.id, run.namespace, run.workflow, run.state) == (
        run_id,
        "default",
        "orders",
        "RUNNING",
    )
    assert (run.open_tasks, run.generation, run.HasField("ended_at")) == (1, 1, False)
    stored = await mill.store.reader.run("default", run_id)
    assert run.created_at.ToMicroseconds() == stored.created_at


async def test_a_run_of_another_namespace_is_not_there(mill: Mill, client: Client) -> None:
    run_id = await mill.start(a_step(), namespace="theirs")
    theirs = wire.GetRunRequest(namespace="theirs", run_id=run_id)

    assert (await client.ask("GetRun", theirs, wire.Run)).id == run_id
    with refused(grpc.StatusCode.NOT_FOUND, f"there is no run {run_id}"):
        await client.ask("GetRun", wire.GetRunRequest(run_id=run_id), wire.Run)
    with refused(grpc.StatusCode.NOT_FOUND, run_id):
        await client.ask("ListTasks", wire.ListTasksRequest(run_id=run_id), wire.ListTasksResponse)


async def test_runs_are_listed_page_by_page_newest_first(mill: Mill, client: Client) -> None:
    started = [await mill.start(a_step()) for _ in range(5)]
    await mill.start(a_step(), namespace="theirs")

    listed = [run.id async for run in _all_runs(client, page_size=2)]

    assert listed == sorted(started, reverse=True)


async def _all_runs(client: Client, **fields: Any) -> AsyncIterator[wire.Run]:
    token = None
    while token != "":
        request = wire.ListRunsRequest(page_token=token or "", **fields)
        page = await client.ask("ListRuns", request, wire.ListRunsResponse)
        assert len(page.runs) <= fields["page_size"]
        for run in page.runs:
            yield run
        token = page.next_page_token


async def test_runs_are_filtered_by_state_and_workflow(mill: Mill, client: Client) -> None:
    await mill.start(a_step(), name="orders")
    returned = await mill.start(a_step(), name="returns")

    running = wire.ListRunsRequest(states=["RUNNING"], workflow="returns")
    ended = wire.ListRunsRequest(states=["SUCCEEDED", "FAILED"])

    found = await client.ask("ListRuns", running, wire.ListRunsResponse)
    assert [run.id for run in found.runs] == [returned]
    assert not (await client.ask("ListRuns", ended, wire.ListRunsResponse)).runs


async def test_a_task_is_shown_with_its_attempts_and_its_result(mill: Mill, client: Client) -> None:
    run_id = await mill.start(a_step())
    async with a_stranger(mill) as worker:
        first = await worker.token()
        boom = TaskError(type="Boom", message="it broke")
        await worker.report(first, Failed(epoch=first.epoch, error=boom))
        second = await worker.token()
        await worker.report(second, Succeeded(second.epoch, b'{"n":1}'))
        await mill.ended(run_id)

    by_id = wire.GetTaskRequest(run_id=run_id, id="step")
    details = await client.ask("GetTask", by_id, wire.TaskDetails)
    by_position = wire.GetTaskRequest(run_id=run_id, position=0)
    assert await client.ask("GetTask", by_position, wire.TaskDetails) == details
    assert (details.task.state, details.task.attempt, details.result) == (
        "SUCCEEDED",
        2,
        b'{"n":1}',
    )
    assert [(one.attempt, one.reason, one.error.type) for one in details.attempts] == [
        (1, "failed", "Boom")
    ]


async def test_tasks_are_listed_page_by_page(mill: Mill, client: Client) -> None:
    run_id = await mill.start(a_step("a"), a_step("b", "a"), a_step("c", "b"))
    request = wire.ListTasksRequest(run_id=run_id, page_size=2)

    first = await client.ask("ListTasks", request, wire.ListTasksResponse)
    request.page_token = first.next_page_token
    second = await client.ask("ListTasks", request, wire.ListTasksResponse)

    shown = [(task.id, task.executor, task.state) for task in (*first.tasks, *second.tasks)]
    assert shown == [("a", "do", "READY"), ("b", "do", "PENDING"), ("c", "do", "PENDING")]
    assert second.next_page_token == ""


async def test_a_watch_tells_every_change_until_the_run_has_ended(
    mill: Mill, client: Client
) -> None:
    run_id = await mill.start(a_step())
    watch = client.watch(run_id)
    news = aiter(watch)
    states = [(await anext(news)).state]
    async with a_stranger(mill) as worker:
        token = await worker.token()
        await worker.report(token, Succeeded(token.epoch, None))
        states += [run.state async for run in news]

    assert states == ["RUNNING", "SUCCEEDED"]
    assert await watch.code() is grpc.StatusCode.OK


async def test_a_watch_that_nobody_reads_any_more_ends(mill: Mill, client: Client) -> None:
    run_id = await mill.start(a_step())
    watch = client.watch(run_id)
    await watch.read()
    watch.cancel()
    other = client.watch(await mill.start(a_step()))

    assert (await other.read()).state == "RUNNING"
    other.cancel()


@pytest.mark.parametrize(
    ("method", "request_", "text"),
    [
        ("GetRun", wire.GetRunRequest(run_id="latest"), "run_id: must be the id of a run"),
        ("GetRun", wire.GetRunRequest(run_id=NOBODY, namespace="x" * 200), "namespace: must"),
        ("ListRuns", wire.ListRunsRequest(states=["DONE"]), "states: 'DONE' is no state of a run"),
        ("ListRuns", wire.ListRunsRequest(page_size=501), "page_size: must be at most 500"),
        ("ListRuns", wire.ListRunsRequest(page_token="x"), "page_token: must be the id"),
        ("ListRuns", wire.ListRunsRequest(workflow="a\0"), "workflow: must have"),
        ("ListTasks", wire.ListTasksRequest(run_id=NOBODY, page_token="-1"), "page_token: must"),
        ("ListTasks", wire.ListTasksRequest(run_id=NOBODY, page_size=9_999), "page_size: must"),
    ],
)
async def test_a_bad_request_is_told_which_field_is_wrong(
    client: Client, method: str, request_: Any, text: str
) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT, text):
        await client.ask(method, request_, wire.Run)


async def test_what_is_missing_is_named(mill: Mill, client: Client) -> None:
    run_id = await mill.start(a_step(), name="orders")

    with refused(grpc.StatusCode.NOT_FOUND, f"there is no run {NOBODY}"):
        await client.ask("GetRun", wire.GetRunRequest(run_id=NOBODY), wire.Run)
    with refused(grpc.StatusCode.NOT_FOUND, "workflow orders has no task 'nothing'"):
        await client.ask("GetTask", wire.GetTaskRequest(run_id=run_id, id="nothing"), wire.Run)
    with refused(grpc.StatusCode.NOT_FOUND, "has no task at position 7"):
        await client.ask("GetTask", wire.GetTaskRequest(run_id=run_id, position=7), wire.Run)
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "task: give id or position"):
        await client.ask("GetTask", wire.GetTaskRequest(run_id=run_id), wire.Run)
    with refused(grpc.StatusCode.NOT_FOUND, NOBODY):
        await client.watch(NOBODY).read()


async def test_bytes_that_are_no_request_are_refused(mill: Mill) -> None:
    async with grpc.aio.insecure_channel(mill.address) as channel:
        for method in ("GetRun", "ListRuns", "GetTask", "ListTasks"):
            with refused(grpc.StatusCode.INVALID_ARGUMENT, f"is no {method}Request"):
                ask = channel.unary_unary(f"/{SERVICE}/{method}", None, None)
                await ask(b"\xff\xff", timeout=5)
