"""Runs, jobs, workflows and dead letters through the client, against the real application."""

from __future__ import annotations

import msgspec
import pytest

from tests.api.crew import Crew, a_definition, one_task
from tidemill.client import Client, RunFailed
from tidemill.domain.errors import Conflict, InvalidInput, NotFound
from tidemill.domain.run import RunState
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import Workflow
from tidemill.protocol.resources import ReplayMany


def _workflow(definition: dict[str, object]) -> Workflow:
    return msgspec.convert(definition, Workflow)


ORDERS = _workflow(a_definition())
BROKEN = _workflow(one_task("boom", name="broken"))
HELD = _workflow(one_task("hold", name="held"))


async def test_a_run_is_submitted_waited_for_and_its_result_read(
    client: Client, crew: Crew
) -> None:
    handle = await client.submit(ORDERS, {"kilos": 12}, labels={"team": "mill"})

    assert (await handle.wait(10)).state is RunState.SUCCEEDED
    assert await handle.result() == {"ship": 2}
    shown = await client.run(handle.id, include=["input"])
    assert (shown.input, shown.labels) == ({"kilos": 12}, {"team": "mill"})


async def test_the_result_of_a_run_that_failed_is_raised(client: Client, crew: Crew) -> None:
    handle = await client.submit(BROKEN)

    with pytest.raises(RunFailed, match=r"is FAILED: .*it broke") as failed:
        await handle.result(10)
    assert failed.value.outcome.id == handle.id


async def test_a_wait_that_is_over_says_how_the_run_stands(client: Client, crew: Crew) -> None:
    handle = await client.submit(HELD)

    with pytest.raises(TimeoutError, match=r"is RUNNING after 0\.1 s"):
        await handle.wait(0.1)


async def test_the_same_key_names_the_same_run(client: Client) -> None:
    first = await client.submit(ORDERS, {"n": 1}, key="order-1")
    again = await client.submit(ORDERS, {"n": 1}, key="order-1")

    assert (again.id, first.created, again.created) == (first.id, True, False)
    with pytest.raises(Conflict):
        await client.submit(ORDERS, {"n": 2}, key="order-1")


async def test_runs_are_listed_page_by_page_and_by_filter(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.client.calls.PAGE_ITEMS_MAX", 2)
    ids = [(await client.start(ORDERS)).id for _ in range(5)]
    await client.start(BROKEN, labels={"team": "mill"})

    assert [run.id async for run in client.runs(workflow="orders")] == ids[::-1]
    assert [run.id async for run in client.runs(3, workflow="orders")] == ids[:1:-1]
    assert [run.workflow async for run in client.runs(label="team=mill")] == ["broken"]


async def test_a_run_is_paused_resumed_and_cancelled(client: Client, crew: Crew) -> None:
    handle = await client.submit(HELD)

    assert (await client.pause(handle.id)).state is RunState.PAUSED
    assert (await client.resume(handle.id)).state is RunState.RUNNING
    assert (await handle.cancel()).stopping


async def test_a_failed_run_is_retried_and_its_dead_letter_replayed(
    client: Client, crew: Crew
) -> None:
    handle = await client.submit(BROKEN)
    await handle.wait(10)

    [letter] = [one async for one in client.dead_letters(run=handle.id)]
    retried = await client.retry(handle.id)
    await handle.wait(10)
    replayed = await client.replay(handle.id, letter.task)

    assert (letter.task, retried.tasks) == ("only", 1)
    assert replayed.generation == 3


async def test_dead_letters_are_counted_replayed_in_bulk_and_discarded(
    client: Client, crew: Crew
) -> None:
    handle = await client.submit(BROKEN)
    await handle.wait(10)

    [group] = await client.dead_letter_groups()
    after = await client.replay_many(ReplayMany(workflow="broken", rate=1_000))
    await handle.wait(10)
    await client.discard(handle.id, "only")

    assert (group.workflow, group.type, group.count) == ("broken", "Boom", 1)
    assert after.replayed == 1
    assert [one async for one in client.dead_letters()] == []


async def test_a_task_is_shown_with_what_it_was_given_and_what_came_of_it(
    client: Client, crew: Crew
) -> None:
    handle = await client.submit(ORDERS)
    await handle.wait(10)

    tasks = [task.id async for task in client.tasks(handle.id)]
    details = await client.task(handle.id, "pick")

    assert tasks == ["pick", "ship"]
    assert (details.params, details.input, details.result) == ({"value": 1}, {}, 1)
    assert [one.attempt for one in details.attempts] == [1]


async def test_a_workflow_is_deployed_once_started_by_name_and_deleted(
    client: Client, crew: Crew
) -> None:
    deployed, again = await client.deploy(ORDERS), await client.deploy(ORDERS)
    handle = await client.submit("orders", version=1)

    assert (deployed.version, deployed.created, again.created) == (1, True, False)
    assert [one.name async for one in client.workflows(text="ord")] == ["orders"]
    assert [one.number async for one in client.versions("orders")] == [1]
    shown = (await client.workflow("orders")).definition
    assert shown is not None
    assert [task.id for task in shown.tasks] == ["pick", "ship"]
    assert (await handle.wait(10)).version == 1
    await client.delete_workflow("orders")
    with pytest.raises(NotFound):
        await client.start("orders")


async def test_a_wrong_definition_comes_back_with_every_problem(client: Client) -> None:
    wrong = _workflow(a_definition(output="tasks.nobody"))
    loop = msgspec.structs.replace(
        ORDERS,
        tasks=(msgspec.structs.replace(ORDERS.tasks[0], depends_on=("ship",)), ORDERS.tasks[1]),
    )

    with pytest.raises(InvalidInput) as refused:
        await client.validate(wrong)
    with pytest.raises(InvalidInput) as circle:
        await client.deploy(loop)

    assert refused.value.problems[0].path
    assert circle.value.code == "CYCLE"


async def test_a_job_is_submitted_listed_and_shown(client: Client, crew: Crew) -> None:
    job = await client.submit_job("noop", {"n": 1}, max_retries=0)
    await client.wait(job.id, 10)

    shown = await client.job(job.id)

    assert (shown.type, shown.payload, shown.state) == ("noop", {"n": 1}, TaskState.SUCCEEDED)
    assert [one.id async for one in client.jobs(type="noop", state=["SUCCEEDED"])] == [job.id]


async def test_workers_queues_and_the_overview_are_told(client: Client, crew: Crew) -> None:
    await (await client.submit(ORDERS)).wait(10)

    [worker] = await client.workers()
    [queue] = await client.queues()
    overview = await client.overview()

    assert (worker.worker, worker.slots, queue.name) == ("ada", 10, "default")
    assert (overview.namespace, overview.slots) == ("default", 10)


async def test_what_is_not_there_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound) as missing:
        await client.run("01980000-0000-7000-8000-000000000001")

    assert missing.value.code == "NOT_FOUND"
