"""Runs that are paused, resumed and tried again, from end to end."""

from __future__ import annotations

import pytest

from tests.roles.broker_mill import BrokerMill, on_a_broker_mill
from tests.roles.mill import Mill, a_chain, a_step, on_a_mill, on_a_mill_of_small_turns
from tidemill.domain.errors import Conflict, NotFound
from tidemill.domain.facts import FactType, decode_facts
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import Run
from tidemill.domain.task_run import ALONE, PAUSED, Reason, TaskState
from tidemill.domain.workflow import RetryPolicy, Timeouts
from tidemill.engine import runs

NO_RETRY = RetryPolicy(max_retries=0)


async def pause(mill: Mill, run_id: RunId) -> Run:
    return await runs.pause(mill.store, mill.bus, "default", run_id)


async def resume(mill: Mill, run_id: RunId) -> Run:
    return await runs.resume(mill.store, mill.bus, "default", run_id)


async def retry(mill: Mill, run_id: RunId) -> Run:
    return await runs.retry_failed(mill.store, mill.bus, "default", run_id)


async def holds(mill: Mill, run_id: RunId) -> list[str | None]:
    tasks = await mill.store.reader.tasks("default", run_id, -1, 100_000)
    return [task.hold for task in tasks if task.state is TaskState.READY]


async def told(mill: Mill) -> list[FactType]:
    async with mill.store.transaction() as tx:
        await tx.outbox.stamp(1_000)
        rows = await tx.outbox.read(0, 1_000)
    return [fact.type for row in rows for fact in decode_facts(row.facts)]


@on_a_mill
async def test_what_runs_may_end_and_its_children_wait_until_the_run_is_resumed(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(*a_chain(2))
    token = (await worker.assignment()).token

    await pause(mill, run_id)
    await worker.succeed(token)
    assert await worker.nothing_comes(30)
    assert await holds(mill, run_id) == [PAUSED]
    await resume(mill, run_id)
    await worker.succeed((await worker.assignment(1)).token)

    assert (await mill.ended(run_id)).state == "SUCCEEDED"
    facts = await told(mill)
    assert facts.count(FactType.WORKFLOW_PAUSED) == facts.count(FactType.WORKFLOW_RESUMED) == 1


@on_a_mill
async def test_others_have_the_slots_that_a_paused_run_leaves(mill: Mill) -> None:
    run_id = await mill.start(*(a_step(f"t{place}") for place in range(50)))
    await pause(mill, run_id)
    await mill.start(a_step("other"))
    worker = mill.worker(slots=4)
    await worker.open()

    assert (await worker.assignment(3)).task == "other"
    assert await worker.nothing_comes(20)


@on_a_mill_of_small_turns
async def test_a_large_run_is_held_and_admitted_in_many_turns(mill: Mill) -> None:
    run_id = await mill.start(*(a_step(f"t{place}") for place in range(1_050)))
    await mill.clock.sleep(5)

    await pause(mill, run_id)
    await mill.clock.sleep(1)
    assert await holds(mill, run_id) == [PAUSED] * 1_050
    assert (await mill.run(run_id)).swept is None
    await resume(mill, run_id)
    await mill.clock.sleep(1)

    assert await holds(mill, run_id) == [None] * 1_050


@on_a_mill_of_small_turns
async def test_a_pause_in_the_middle_of_resuming_loses_nothing(mill: Mill) -> None:
    run_id = await mill.start(*(a_step(f"t{place}") for place in range(300)))
    await mill.clock.sleep(2)

    for change in (pause, resume, pause, resume, pause):
        await change(mill, run_id)
        await mill.clock.sleep(0.001)
    await mill.clock.sleep(10)
    assert await holds(mill, run_id) == [PAUSED] * 300
    await resume(mill, run_id)
    worker = mill.worker(slots=300)
    await worker.open()
    await worker.succeed(*(one.token for one in await worker.assignments(300)))

    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_another_scheduler_goes_on_with_holding_after_a_crash(mill: Mill) -> None:
    run_id = await mill.start(*(a_step(f"t{place}") for place in range(3)))
    mill.bus.send_hint = _lost  # type: ignore[method-assign]

    await pause(mill, run_id)
    await mill.clock.sleep(10)

    assert await holds(mill, run_id) == [PAUSED] * 3


async def _lost(hint: object) -> None:
    """No hint arrives."""


@on_a_mill
async def test_the_wait_in_the_queue_does_not_count_while_a_run_is_paused(mill: Mill) -> None:
    run_id = await mill.start(a_step("a", timeouts=Timeouts(queue_seconds=10)))
    await mill.clock.sleep(8)
    await pause(mill, run_id)
    await mill.clock.sleep(60)

    await resume(mill, run_id)
    await mill.clock.sleep(8)
    assert await mill.states(run_id) == ["READY"]

    assert (await mill.ended(run_id, 5)).state == "FAILED"


@on_a_mill
async def test_the_time_of_a_run_goes_on_while_it_is_paused(mill: Mill) -> None:
    run_id = await mill.start(*a_chain(3), timeout_seconds=20)
    await pause(mill, run_id)

    run = await mill.ended(run_id, 25)

    assert (run.state, run.reason) == ("FAILED", Reason.TIMEOUT)


@on_a_mill
async def test_a_backoff_that_is_over_waits_for_the_run(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    policy = RetryPolicy(max_retries=1, base_seconds=1, jitter=0.0)
    run_id = await mill.start(a_step("a", retry=policy))
    await worker.fail((await worker.assignment()).token)

    await pause(mill, run_id)
    assert await worker.nothing_comes(10)
    assert await holds(mill, run_id) == [PAUSED]
    await resume(mill, run_id)

    assert (await worker.assignment(1)).attempt == 2


@on_a_mill
async def test_a_suspect_is_still_one_after_a_pause(mill: Mill) -> None:
    killed = mill.worker(slots=1)
    await killed.open()
    run_id = await mill.start(a_step("suspect", retry=RetryPolicy(max_losses=1)))
    await killed.assignment()
    await pause(mill, run_id)
    killed.hang_up()
    await mill.clock.sleep(10)
    assert await holds(mill, run_id) == [PAUSED]

    await resume(mill, run_id)
    await mill.clock.sleep(1)

    assert await holds(mill, run_id) == [ALONE]


@on_a_mill
async def test_a_paused_run_is_cancelled(mill: Mill) -> None:
    worker = mill.worker(slots=1)
    await worker.open()
    run_id = await mill.start(a_step("a"), a_step("b"), a_step("c", "a"))
    await worker.assignment()
    await pause(mill, run_id)
    await mill.clock.sleep(1)

    run = await runs.cancel(mill.store, mill.bus, "default", run_id)
    await worker.confirm_cancel()

    assert run.state == "RUNNING"
    assert (await mill.ended(run_id)).state == "CANCELLED"


@on_a_mill
async def test_a_paused_run_ends_with_its_last_task(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("only"))
    token = (await worker.assignment()).token
    await pause(mill, run_id)

    await worker.succeed(token)

    assert (await mill.run(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_pausing_and_resuming_again_is_harmless(mill: Mill) -> None:
    run_id = await mill.start(a_step("a"))

    states = [
        (await change(mill, run_id)).state for change in (resume, pause, pause, resume, resume)
    ]

    assert states == ["RUNNING", "PAUSED", "PAUSED", "RUNNING", "RUNNING"]
    assert (await told(mill)).count(FactType.WORKFLOW_PAUSED) == 1


@on_a_mill
async def test_what_has_ended_or_is_being_stopped_is_not_paused(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"))
    await worker.assignment()
    await runs.cancel(mill.store, mill.bus, "default", run_id)

    with pytest.raises(Conflict, match="being stopped") as stopping:
        await pause(mill, run_id)
    await worker.confirm_cancel()
    await mill.ended(run_id)

    assert stopping.value.code == "STOPPING"
    for change in (pause, resume):
        with pytest.raises(Conflict, match="is CANCELLED: only one that has not ended") as ended:
            await change(mill, run_id)
        assert ended.value.code == "ENDED"


@on_a_mill
async def test_a_run_of_another_namespace_is_not_found(mill: Mill) -> None:
    run_id = await mill.start(a_step("a"))

    for control in (runs.pause, runs.resume, runs.retry_failed, runs.cancel):
        with pytest.raises(NotFound):
            await control(mill.store, mill.bus, "other", run_id)

    assert (await mill.run(run_id)).state == "RUNNING"


@on_a_mill
async def test_a_retry_runs_all_that_failed_and_what_waited_for_it(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    steps = [a_step(name, retry=NO_RETRY) for name in "ab"]
    run_id = await mill.start(*steps, a_step("good"), a_step("last", "a", "b", "good"))
    tokens = {one.task: one.token for one in await worker.assignments(3)}
    await worker.succeed(tokens["good"])
    for name in "ab":
        await worker.fail(tokens[name])
    await mill.ended(run_id)

    run = await retry(mill, run_id)
    again = await worker.assignments(2)
    await worker.succeed(*(one.token for one in again))
    await worker.succeed((await worker.assignment()).token)

    assert (run.state, run.generation) == ("RUNNING", 2)
    assert {(one.task, one.token.epoch, one.attempt) for one in again} == {("a", 2, 1), ("b", 2, 1)}
    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_a_retry_of_a_cancelled_run_goes_on_with_the_rest(mill: Mill) -> None:
    run_id = await mill.start(*a_chain(2))
    await runs.cancel(mill.store, mill.bus, "default", run_id)
    await mill.ended(run_id)

    await retry(mill, run_id)
    worker = mill.worker()
    await worker.open()
    for _ in range(2):
        await worker.succeed((await worker.assignment()).token)

    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_a_cancelled_run_of_which_everything_had_succeeded_ends_anew_at_once(
    mill: Mill,
) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token
    await runs.cancel(mill.store, mill.bus, "default", run_id)
    await mill.clock.sleep(1)
    await worker.succeed(token)
    assert (await mill.ended(run_id)).state == "CANCELLED"

    run = await retry(mill, run_id)

    assert (run.state, run.generation) == ("SUCCEEDED", 2)


@on_a_mill
async def test_there_must_be_something_to_try_again(mill: Mill) -> None:
    run_id = await mill.start(a_step("a"))

    with pytest.raises(Conflict) as refused:
        await retry(mill, run_id)

    assert refused.value.code == "NOTHING_FAILED"


@on_a_broker_mill
async def test_workers_behind_a_broker_get_nothing_of_a_paused_run(stage: BrokerMill) -> None:
    stage.hire()
    stage.gate.clear()
    run_id = await stage.mill.start(*a_chain(2))
    await stage.begun(1)

    await pause(stage.mill, run_id)
    stage.gate.set()
    await stage.mill.clock.sleep(20)
    assert stage.ran == [("w", "t0")]
    await resume(stage.mill, run_id)

    assert (await stage.mill.ended(run_id, 20)).state == "SUCCEEDED"


@on_a_broker_mill
async def test_a_command_that_nobody_has_taken_up_is_taken_back_by_a_pause(
    stage: BrokerMill,
) -> None:
    stage.hire()
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1
    run_id = await stage.mill.start(a_step("t"))
    await stage.until(run_id, TaskState.RUNNING)
    await pause(stage.mill, run_id)
    stage.broker.copies = lambda _topic, _kind: 1

    task = await stage.until(run_id, TaskState.READY, 10)
    assert (task.hold, stage.ran) == (PAUSED, [])
    await resume(stage.mill, run_id)

    assert (await stage.mill.ended(run_id, 20)).state == "SUCCEEDED"
    assert await stage.spent(run_id) == (0, 0)
