"""What becomes of runs: order, retries, failures, timeouts, cancels, replays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from tests.roles.mill import Mill, a_chain, a_step, on_a_mill
from tidemill.domain.errors import Conflict, InvalidInput, NotFound
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.task_run import Reason
from tidemill.domain.workflow import (
    InputSource,
    RetryPolicy,
    Source,
    TaskSpec,
    Timeouts,
    TriggerRule,
    Workflow,
)
from tidemill.engine import dead_letters, runs

NO_RETRY = RetryPolicy(max_retries=0)


@on_a_mill
async def test_a_chain_runs_in_order_and_the_run_succeeds(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(*a_chain(3))

    seen = []
    for _ in range(3):
        assignment = await worker.assignment()
        seen.append(assignment.task)
        await worker.succeed(assignment.token)

    assert seen == ["t0", "t1", "t2"]
    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_independent_tasks_are_assigned_together(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    await mill.start(a_step("a"), a_step("b"), a_step("c"))

    assignments = await worker.assignments(3)

    assert sorted(one.task for one in assignments) == ["a", "b", "c"]


@on_a_mill
async def test_no_grant_waits_for_what_must_be_read_for_another(mill: Mill) -> None:
    read, may_read = mill.store.payloads.inputs, asyncio.Event()

    async def read_late(run_ids: Sequence[RunId]) -> Mapping[RunId, bytes]:
        await may_read.wait()
        return await read(run_ids)

    mill.store.payloads.inputs = read_late  # type: ignore[method-assign]
    with_large_input = await mill.start(a_step("a"), input={"text": 2_000 * "x"})
    with_small_input = await mill.start(a_step("a"))
    worker = mill.worker()
    await worker.open()

    first = await worker.assignment()
    may_read.set()
    second = await worker.assignment()

    assert [one.token.run_id for one in (first, second)] == [with_small_input, with_large_input]


@on_a_mill
async def test_a_worker_gets_no_more_than_its_slots(mill: Mill) -> None:
    worker = mill.worker(slots=2)
    await worker.open()
    await mill.start(a_step("a"), a_step("b"), a_step("c"))

    first = await worker.assignments(2)

    assert await worker.nothing_comes(5)
    await worker.succeed(first[0].token)
    assert (await worker.assignment()).task == "c"


@on_a_mill
async def test_results_of_parents_travel_to_the_child_as_bytes(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    child = a_step("child", inputs={"x": Source(result="a", path="n")})
    await mill.start(a_step("a"), child, input={"k": 1})

    await worker.succeed((await worker.assignment()).token, result={"n": 5})
    assignment = await worker.assignment()

    assert assignment.results == {"a": b'{"n":5}'}
    assert assignment.run_input == b'{"k":1}'


@on_a_mill
async def test_a_failed_attempt_is_tried_again_after_its_backoff_and_not_before(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    policy = RetryPolicy(max_retries=1, base_seconds=10, jitter=0)
    run_id = await mill.start(a_step("a", retry=policy))
    await worker.fail((await worker.assignment()).token)

    assert await worker.nothing_comes(9.9)
    second = await worker.assignment(1)

    assert (second.token.epoch, second.attempt) == (2, 2)
    await worker.succeed(second.token)
    assert (await mill.ended(run_id)).state == "SUCCEEDED"
    (first,) = await mill.store.reader.attempts("default", TaskKey(run_id, 0))
    assert (first.epoch, first.reason) == (1, Reason.FAILED)


@on_a_mill
async def test_a_failure_stops_only_its_descendants(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(
        a_step("bad", retry=NO_RETRY),
        a_step("child", "bad"),
        a_step("good"),
        a_step("more", "good"),
    )
    by_task = {one.task: one.token for one in await worker.assignments(2)}

    await worker.fail(by_task["bad"])
    await worker.succeed(by_task["good"])
    await worker.succeed((await worker.assignment()).token)

    run = await mill.ended(run_id)
    assert (run.state, run.reason) == ("FAILED", "task_failed")
    assert await mill.states(run_id) == ["FAILED", "UPSTREAM_FAILED", "SUCCEEDED", "SUCCEEDED"]


@on_a_mill
async def test_on_failure_stop_cancels_the_rest(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(
        a_step("bad", retry=NO_RETRY), a_step("good"), a_step("more", "good"), on_failure="stop"
    )
    by_task = {one.task: one.token for one in await worker.assignments(2)}

    await worker.fail(by_task["bad"])
    assert await worker.confirm_cancel() == [by_task["good"]]

    assert (await mill.ended(run_id)).state == "FAILED"
    assert await mill.states(run_id) == ["FAILED", "CANCELLED", "CANCELLED"]


@on_a_mill
async def test_a_clean_up_task_runs_after_a_failure(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(
        a_step("bad", retry=NO_RETRY), a_step("mop", "bad", trigger=TriggerRule.ONE_FAILED)
    )
    await worker.fail((await worker.assignment()).token)

    await worker.succeed((await worker.assignment()).token)

    assert (await mill.ended(run_id)).state == "FAILED"
    assert await mill.states(run_id) == ["FAILED", "SUCCEEDED"]


@on_a_mill
async def test_an_error_named_final_is_not_tried_again(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a", retry=RetryPolicy(final_errors=("Boom",))))

    await worker.fail((await worker.assignment()).token)

    await mill.ended(run_id)
    assert (await mill.task(run_id)).reason == Reason.FINAL_ERROR


@on_a_mill
async def test_the_scheduler_enforces_attempt_timeouts_and_tells_the_worker(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    policy = RetryPolicy(max_retries=0)
    run_id = await mill.start(a_step("a", retry=policy, timeouts=Timeouts(attempt_seconds=5)))
    token = (await worker.assignment()).token

    assert await worker.confirm_cancel() == [token]

    run = await mill.ended(run_id)
    task = await mill.task(run_id)
    assert (run.state, task.reason) == ("FAILED", Reason.TIMEOUT)
    assert task.started_at is not None
    assert task.ended_at is not None
    assert 5 <= (task.ended_at - task.started_at) / 1e6 <= 5 + 1 + mill.config.scan_seconds


@on_a_mill
async def test_a_task_that_waits_too_long_in_the_queue_fails(mill: Mill) -> None:
    run_id = await mill.start(a_step("a", timeouts=Timeouts(queue_seconds=3)))

    run = await mill.ended(run_id)

    task = await mill.task(run_id)
    assert run.state == "FAILED"
    assert task.error is not None
    assert task.error.type == "QueueTimeout"


@on_a_mill
async def test_a_run_that_takes_too_long_fails_and_its_tasks_are_cancelled(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(*a_chain(3), timeout_seconds=4)
    await worker.assignment()

    await worker.confirm_cancel()

    run = await mill.ended(run_id)
    assert (run.state, run.reason) == ("FAILED", Reason.TIMEOUT)
    assert await mill.states(run_id) == ["CANCELLED"] * 3


@on_a_mill
async def test_a_cancelled_run_ends_when_its_workers_have_confirmed(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(*a_chain(3))
    await worker.assignment()

    await runs.cancel(mill.store, mill.bus, "default", run_id)
    await mill.clock.sleep(2)
    assert await mill.states(run_id) == ["CANCELLING", "CANCELLED", "CANCELLED"]
    await worker.confirm_cancel()

    assert (await mill.ended(run_id)).state == "CANCELLED"


@on_a_mill
async def test_cancelling_again_or_too_late_is_harmless(mill: Mill) -> None:
    run_id = await mill.start(a_step("a"))
    await runs.cancel(mill.store, mill.bus, "default", run_id)
    await mill.ended(run_id)

    run = await runs.cancel(mill.store, mill.bus, "default", run_id)

    assert run.state == "CANCELLED"


@on_a_mill
async def test_cancelling_a_run_that_does_not_exist_is_not_found(mill: Mill) -> None:
    with pytest.raises(NotFound, match="no run"):
        await runs.cancel(
            mill.store, mill.bus, "default", RunId("01980000-0000-7000-8000-00000000ffff")
        )


@on_a_mill
async def test_a_replayed_dead_letter_reopens_its_run(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a", retry=NO_RETRY), a_step("b", "a"))
    await worker.fail((await worker.assignment()).token)
    await mill.ended(run_id)

    run = await dead_letters.replay(mill.store, mill.bus, "default", TaskKey(run_id, 0))
    assert (run.state, run.generation) == ("RUNNING", 2)
    again = await worker.assignment()
    assert (again.token.epoch, again.attempt) == (2, 1)
    await worker.succeed(again.token)
    await worker.succeed((await worker.assignment()).token)

    assert (await mill.ended(run_id)).state == "SUCCEEDED"
    (attempt,) = await mill.store.reader.attempts("default", TaskKey(run_id, 0))
    assert attempt.reason == Reason.EXHAUSTED


@on_a_mill
async def test_a_replay_of_a_stopped_run_takes_up_what_was_cancelled(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(
        a_step("bad", retry=NO_RETRY), a_step("slow"), a_step("more", "slow"), on_failure="stop"
    )
    by_task = {one.task: one.token for one in await worker.assignments(2)}
    await worker.fail(by_task["bad"])
    await worker.confirm_cancel()
    await mill.ended(run_id)

    await dead_letters.replay(mill.store, mill.bus, "default", TaskKey(run_id, 0))
    await worker.succeed(*(one.token for one in await worker.assignments(2)))
    await worker.succeed((await worker.assignment()).token)

    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_only_a_dead_letter_can_be_replayed(mill: Mill) -> None:
    run_id = await mill.start(a_step("a"))

    with pytest.raises(Conflict, match="only a FAILED task can be replayed; this one is READY"):
        await dead_letters.replay(mill.store, mill.bus, "default", TaskKey(run_id, 0))


@on_a_mill
async def test_the_output_is_evaluated_by_a_worker_after_its_tasks(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"), output="a.n")
    await worker.succeed((await worker.assignment()).token, result={"n": 5})

    assignment = await worker.assignment()

    assert assignment.executor == "$output"
    assert msgspec.json.decode(assignment.params) == {"expression": "a.n"}
    await worker.succeed(assignment.token, result=5)
    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_the_same_key_and_body_start_one_run(mill: Mill) -> None:
    request = runs.StartRequest(workflow=Workflow(name="w", tasks=(a_step("a"),)), key="k")

    many = await asyncio.gather(
        *(runs.start(mill.store, mill.bus, mill.entropy, [request]) for _ in range(1_000))
    )

    assert len({started.run_id for (started,) in many}) == 1
    assert sum(started.created for (started,) in many) == 1


@on_a_mill
async def test_the_same_key_with_another_body_is_a_conflict(mill: Mill) -> None:
    workflow = Workflow(name="w", tasks=(a_step("a"),))
    first = runs.StartRequest(workflow=workflow, key="k", input={"n": 1})
    (started,) = await runs.start(mill.store, mill.bus, mill.entropy, [first])

    other = runs.StartRequest(workflow=workflow, key="k", input={"n": 2})
    with pytest.raises(Conflict, match=f"key 'k' has started run {started.run_id}"):
        await runs.start(mill.store, mill.bus, mill.entropy, [other])


@on_a_mill
async def test_wrong_input_is_refused_and_nothing_is_stored(mill: Mill) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    good = runs.StartRequest(workflow=Workflow(name="w", tasks=(a_step("a"),)))
    bad = runs.StartRequest(workflow=Workflow(name="w", tasks=(a_step("a"),), input=schema))

    with pytest.raises(InvalidInput, match="n"):
        await runs.start(mill.store, mill.bus, mill.entropy, [good, bad])

    assert await mill.store.reader.find_runs("default", "01", 10) == []


@on_a_mill
async def test_inputs_that_do_not_fit_into_a_message_fail_the_task_with_a_typed_error(
    mill: Mill,
) -> None:
    worker = mill.worker(slots=30)
    await worker.open()
    wide: dict[str, InputSource] = {f"x{n}": Source(result=f"p{n}") for n in range(20)}
    parents = [a_step(f"p{n}") for n in range(20)]
    run_id = await mill.start(*parents, TaskSpec(id="z", executor="noop", inputs=wide))
    tokens = [one.token for one in await worker.assignments(20)]

    await worker.succeed(*tokens, result="x" * 250_000)

    assert (await mill.ended(run_id)).state == "FAILED"
    error = (await mill.task(run_id, 20)).error
    assert error is not None
    assert error.type == "InputTooLarge"


@on_a_mill
async def test_timers_close_together_all_fire_in_time(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    quick = RetryPolicy(base_seconds=0.1, jitter=0)
    slow = RetryPolicy(base_seconds=0.2, jitter=0)
    await mill.start(a_step("quick", retry=quick), a_step("slow", retry=slow))
    tokens = {one.task: one.token for one in await worker.assignments(2)}
    failed_at = mill.clock.monotonic()
    await worker.fail(tokens["quick"])
    await worker.fail(tokens["slow"])

    begun = []
    for _ in range(2):
        await worker.assignment()
        begun.append(round(mill.clock.monotonic() - failed_at, 1))

    assert begun == [0.1, 0.2]
