"""Workers over a broker: what reaches them, what they say, and how it is answered."""

from __future__ import annotations

import asyncio

import pytest

from tests.roles.broker_mill import BrokerMill, Copies, on_a_broker_mill
from tests.roles.mill import a_chain, a_step
from tidemill.domain.run import RunState
from tidemill.domain.task_run import Reason, TaskState
from tidemill.domain.workflow import RetryPolicy, Source, Timeouts
from tidemill.engine import runs
from tidemill.scheduler.config import SchedulerConfig
from tidemill.worker.link import WorkerRefused
from tidemill.worker.shift import Departure

TWICE_AS_MANY: dict[str, Copies] = {
    "commands": lambda topic, _: 2 if topic.startswith("tasks") else 1,
    "started": lambda _, kind: 2 if kind == "task.started" else 1,
    "outcomes": lambda _, kind: 2 if kind == "task.completed" else 1,
    "answers": lambda topic, _: 2 if topic == "answers" else 1,
    "heartbeats": lambda topic, _: 2 if topic == "heartbeats" else 1,
    "everything": lambda _topic, _kind: 3,
}


@on_a_broker_mill
async def test_a_run_goes_over_the_broker_from_end_to_end(stage: BrokerMill) -> None:
    stage.hire("one")

    run_id = await stage.mill.start(*a_chain(3))
    run = await stage.mill.ended(run_id, 10)

    assert run.state is RunState.SUCCEEDED
    assert stage.ran == [("one", "t0"), ("one", "t1"), ("one", "t2")]
    assert await stage.mill.result(run_id, 2) == {"by": "one"}


@on_a_broker_mill
async def test_a_command_says_what_it_is_about_in_readable_words(stage: BrokerMill) -> None:
    stage.hire()

    step = a_step("pay", params={"amount": 7}, inputs={"order": Source(input="@")})
    run_id = await stage.mill.start(step, input={"id": 1})
    await stage.mill.ended(run_id, 10)

    (command,) = stage.broker.on("tasks.default.default")
    assert (command["run_id"], command["task"], command["epoch"]) == (run_id, "pay", 1)
    assert (command["params"], command["run_input"]) == ({"amount": 7}, {"id": 1})


@pytest.mark.parametrize("doubled", TWICE_AS_MANY)
def test_redelivery_changes_nothing(doubled: str) -> None:
    async def run(stage: BrokerMill) -> None:
        stage.broker.copies = TWICE_AS_MANY[doubled]
        stage.hire("one")
        stage.hire("two")

        run_id = await stage.mill.start(*a_chain(3), a_step("beside"))
        await stage.mill.ended(run_id, 10)

        assert sorted(task for _, task in stage.ran) == ["beside", "t0", "t1", "t2"]
        assert await stage.spent(run_id) == (0, 0)

    on_a_broker_mill(run)()


@on_a_broker_mill
async def test_fault_31_a_rebalance_that_gives_two_workers_a_command_lets_the_first_run_it(
    stage: BrokerMill,
) -> None:
    stage.broker.to_everyone = True
    stage.hire("one")
    stage.hire("two")

    run_id = await stage.mill.start(*a_chain(5))
    await stage.mill.ended(run_id, 30)

    assert sorted(task for _, task in stage.ran) == ["t0", "t1", "t2", "t3", "t4"]
    assert len(stage.broker.on("tasks.default.default")) == 5
    assert any(answer.get("stale") for answer in stage.broker.on("answers"))


@on_a_broker_mill
async def test_tasks_go_only_where_queue_and_labels_fit(stage: BrokerMill) -> None:
    stage.hire("plain")
    stage.hire("mail", queues=("mail",))
    stage.hire("gpu", queues=("default", "mail"), labels={"gpu": "a100"})
    await stage.mill.clock.sleep(3)

    run_id = await stage.mill.start(
        a_step("m", queue="mail", labels={"gpu": "a100"}),
        *(a_step(f"g{number}", labels={"gpu": "a100"}) for number in range(3)),
        a_step("nobody", queue="none", timeouts=Timeouts(queue_seconds=5)),
    )
    await stage.mill.ended(run_id, 30)

    assert sorted(stage.ran) == [("gpu", "g0"), ("gpu", "g1"), ("gpu", "g2"), ("gpu", "m")]


@on_a_broker_mill
async def test_two_schedulers_do_not_grant_a_pool_more_than_its_slots(stage: BrokerMill) -> None:
    stage.start(stage.mill.a_scheduler("second"))
    stage.hire("one", slots=2)
    stage.hire("two", slots=1)
    await stage.mill.clock.sleep(3)
    stage.gate.clear()

    run_ids = [await stage.mill.start(a_step("t")) for _ in range(20)]
    granted = 0
    for _ in range(200):
        tasks = [await stage.mill.task(run_id) for run_id in run_ids]
        granted = max(granted, sum(task.state is TaskState.RUNNING for task in tasks))
        await stage.mill.clock.sleep(0.02)
    stage.gate.set()
    for run_id in run_ids:
        await stage.mill.ended(run_id, 60)

    assert granted == 3
    assert len(stage.ran) == 20


@on_a_broker_mill
async def test_a_running_task_is_cancelled_however_often_the_word_is_lost(
    stage: BrokerMill,
) -> None:
    stage.gate.clear()
    stage.hire()
    run_id = await stage.mill.start(*a_chain(2))
    await stage.begun(1)
    stage.broker.copies = lambda topic, _: 0 if topic == "answers" else 1

    await runs.cancel(stage.mill.store, stage.mill.bus, "default", run_id)
    await stage.mill.clock.sleep(5)
    stage.broker.copies = lambda _topic, _kind: 1
    run = await stage.mill.ended(run_id, 10)

    assert run.state is RunState.CANCELLED
    assert await stage.mill.states(run_id) == ["CANCELLED", "CANCELLED"]


@on_a_broker_mill
async def test_what_nobody_has_begun_is_cancelled_at_once(stage: BrokerMill) -> None:
    stage.hire()
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1
    run_id = await stage.mill.start(a_step("t"))
    await stage.until(run_id, TaskState.RUNNING)
    await stage.mill.clock.sleep(1)

    await runs.cancel(stage.mill.store, stage.mill.bus, "default", run_id)
    await stage.mill.ended(run_id, 0.5)
    stage.broker.copies = lambda _topic, _kind: 1
    await stage.mill.clock.sleep(5)

    assert stage.ran == []
    assert await stage.mill.states(run_id) == ["CANCELLED"]


@on_a_broker_mill
async def test_an_attempt_has_its_time_from_the_moment_it_was_taken_up(stage: BrokerMill) -> None:
    stage.hire()
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1
    step = a_step("t", timeouts=Timeouts(attempt_seconds=2), retry=RetryPolicy(max_retries=0))
    run_id = await stage.mill.start(step)
    await stage.mill.clock.sleep(8)

    stage.broker.copies = lambda _topic, _kind: 1
    run = await stage.mill.ended(run_id, 10)

    assert run.state is RunState.SUCCEEDED


@on_a_broker_mill
async def test_a_failed_attempt_is_reported_and_retried(stage: BrokerMill) -> None:
    stage.hire()
    step = a_step("t", retry=RetryPolicy(max_retries=1), timeouts=Timeouts(attempt_seconds=1))
    stage.gate.clear()
    run_id = await stage.mill.start(step)

    await stage.begun(2)
    stage.gate.set()
    await stage.mill.ended(run_id, 10)

    assert await stage.spent(run_id) == (1, 0)


@on_a_broker_mill
async def test_output_and_progress_reach_the_store_and_the_scheduler(stage: BrokerMill) -> None:
    stage.gate.clear()
    stage.hire("one")
    run_id = await stage.mill.start(a_step("t"))
    await stage.begun(1)
    await stage.mill.clock.sleep(2)

    task = await stage.mill.task(run_id)
    logs = await stage.mill.store.reader.logs("default", task.key)
    progress = stage.mill.scheduler.progress()

    assert logs == {1: "one runs t\n"}
    assert progress[task.key].fraction == 0.5


@on_a_broker_mill
async def test_a_worker_that_leaves_hands_back_what_it_runs_and_what_it_has_in_hand(
    stage: BrokerMill,
) -> None:
    stage.gate.clear()
    leaving = stage.hire("leaving")
    run_ids = [await stage.mill.start(a_step("t")) for _ in range(2)]
    await stage.begun(2)
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1
    run_ids.append(await stage.mill.start(a_step("t")))
    await stage.until(run_ids[2], TaskState.RUNNING)
    stage.broker.copies = lambda _topic, _kind: 1

    await leaving.spawn(leaving.worker.drain(1))
    tasks = [await stage.until(run_id, TaskState.READY, 3) for run_id in run_ids]
    stage.gate.set()
    stage.hire("staying")
    ended = [await stage.mill.ended(run_id, 10) for run_id in run_ids]

    assert await leaving.task is Departure.DRAINED
    assert [(task.failures, task.losses) for task in tasks] == [(0, 0)] * 3
    assert [run.state for run in ended] == [RunState.SUCCEEDED] * 3


def test_inputs_too_large_for_a_message_fail_their_task_by_name() -> None:
    async def run(stage: BrokerMill) -> None:
        stage.hire()

        run_id = await stage.mill.start(a_step("t"), input={"data": "x" * 2_000})
        await stage.mill.ended(run_id, 10)

        task = await stage.mill.task(run_id)
        assert task.error is not None
        assert (task.reason, task.error.type) == (Reason.FINAL_ERROR, "InputTooLarge")

    on_a_broker_mill(run, SchedulerConfig(broker_command_bytes_max=2_000))()


def test_a_worker_that_a_scheduler_does_not_want_is_told_why() -> None:
    async def run(stage: BrokerMill) -> None:
        hired = stage.hire()

        with pytest.raises(WorkerRefused, match="executor 'noop' is not known here, only python"):
            async with asyncio.timeout(5):
                await hired.task

    on_a_broker_mill(run, SchedulerConfig(executors_allowed=("python",)))()
