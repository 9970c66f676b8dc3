"""The contract of TaskTable.claim: lanes, floors, holds, and many who claim at once."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.builders import a_run, a_run_id, a_session_id, a_task
from tests.contract.given import LANE, claimed, given, saved
from tidemill.domain.identifiers import Lane
from tidemill.domain.task_run import ALONE, TaskRun, TaskState
from tidemill.ports.store import FORMAT_MAX, NewRun, Store
from tidemill.stores.tables.tasks import INPUT_BYTES_MAX

replace = msgspec.structs.replace


async def granted(store: Store, limit: int) -> list[TaskRun]:
    session_id = a_session_id()
    async with store.transaction() as tx:
        claim = await tx.tasks.claim(LANE, floor=0, limit=limit, alone=False)
        await asyncio.sleep(0)
        await tx.tasks.save(
            [
                replace(task, state=TaskState.RUNNING, epoch=task.epoch + 1, session_id=session_id)
                for task in claim.tasks
            ]
        )
    return claim.tasks


async def test_concurrent_claimers_take_each_task_exactly_once(store: Store) -> None:
    run_id = a_run_id()
    tasks = [a_task(run_id=run_id, position=place) for place in range(60)]
    await given(store, *tasks)

    async def drain() -> list[int]:
        taken: list[int] = []
        while batch := await granted(store, limit=4):
            taken += [task.position for task in batch]
        return taken

    hauls = await asyncio.gather(*(drain() for _ in range(6)))

    assert sorted(place for haul in hauls for place in haul) == list(range(60))


async def test_a_lane_is_served_in_order_of_arrival(store: Store) -> None:
    first, second, third = a_task(), a_task(), a_task()
    for task in (second, third, first):
        await given(store, task)

    assert await claimed(store, limit=2) == [second, third]


async def test_a_batch_keeps_its_order(store: Store) -> None:
    run_id = a_run_id()
    tasks = [a_task(run_id=run_id, position=place) for place in (5, 1, 4, 0)]

    await given(store, *tasks)

    assert await claimed(store) == tasks


async def test_a_task_that_becomes_ready_goes_to_the_end_of_its_lane(store: Store) -> None:
    first, second = a_task(), a_task()
    await given(store, first, second)
    waiting = replace(first, state=TaskState.BACKOFF)

    await saved(store, waiting)
    await saved(store, first)

    assert await claimed(store) == [second, first]


async def test_tasks_that_become_ready_together_wait_in_the_order_given(store: Store) -> None:
    run_id = a_run_id()
    places = [place * 7 % 67 for place in range(67)]
    tasks = [a_task(run_id=run_id, position=place) for place in places]
    pending = [replace(task, state=TaskState.PENDING) for task in tasks]
    await given(store, *sorted(pending, key=lambda task: task.position))

    await saved(store, *tasks)

    assert await claimed(store) == tasks


async def test_a_ready_task_that_is_saved_keeps_its_place(store: Store) -> None:
    first, second = a_task(), a_task()
    await given(store, first, second)
    touched = replace(first, losses=1)

    await saved(store, touched)

    assert await claimed(store) == [touched, second]


@pytest.mark.parametrize("hold", [None, ALONE])
async def test_a_task_that_comes_back_from_a_worker_keeps_its_place(
    store: Store, hold: str | None
) -> None:
    first = a_task()
    await given(store, first)
    await granted(store, limit=1)
    second = a_task(hold=hold)
    await given(store, second)
    back = replace(first, epoch=1, losses=1, hold=hold)

    await saved(store, back)

    assert await claimed(store, alone=hold == ALONE) == [back, second]


async def test_a_task_that_never_waited_comes_back_to_the_end_of_its_lane(store: Store) -> None:
    first = a_task(state=TaskState.PENDING)
    second = a_task()
    await given(store, first, second)
    await saved(store, replace(first, state=TaskState.RUNNING, epoch=1, session_id="s"))
    back = replace(first, state=TaskState.READY, epoch=1)

    await saved(store, back)

    assert await claimed(store) == [second, back]


async def test_a_claim_begins_at_its_floor(store: Store) -> None:
    first, second = a_task(), a_task()
    await given(store, first, second)

    async with store.transaction() as tx:
        claim = await tx.tasks.claim(LANE, floor=0, limit=1, alone=False)
        rest = await tx.tasks.claim(LANE, floor=claim.floor, limit=10, alone=False)
        nothing = await tx.tasks.claim(LANE, floor=rest.floor, limit=10, alone=False)

    assert (claim.tasks, rest.tasks, nothing.tasks) == ([first], [second], [])
    assert nothing.floor == rest.floor > claim.floor


async def test_whoever_arrives_later_is_above_the_floor(store: Store) -> None:
    first, second = a_task(), a_task()
    await given(store, first)
    async with store.transaction() as tx:
        floor = (await tx.tasks.claim(LANE, floor=0, limit=1, alone=False)).floor

    await given(store, second)

    assert await claimed(store, floor=floor) == [second]


async def test_lanes_do_not_mix(store: Store) -> None:
    plain = a_task()
    urgent = a_task(priority=10)
    gpu = a_task(route="default?gpu=a100")
    foreign = a_task(namespace="other")
    await given(store, plain, urgent, gpu, foreign)

    assert await claimed(store, LANE) == [plain]
    assert await claimed(store, Lane("default", "default", 10)) == [urgent]
    assert await claimed(store, Lane("default", "default?gpu=a100", 0)) == [gpu]
    assert await claimed(store, Lane("other", "default", 0)) == [foreign]


async def test_a_held_task_is_not_claimed(store: Store) -> None:
    held = a_task(hold="breaker")
    await given(store, held)
    assert await claimed(store) == []

    await saved(store, replace(held, hold=None))

    assert await claimed(store) == [replace(held, hold=None)]


async def test_tasks_that_run_alone_are_claimed_apart(store: Store) -> None:
    plain, alone = a_task(), a_task(hold=ALONE)
    await given(store, plain, alone, a_task(hold="breaker"))

    assert await claimed(store) == [plain]
    assert await claimed(store, alone=True) == [alone]


async def test_only_ready_tasks_of_a_known_format_are_claimed(store: Store) -> None:
    states = [state for state in TaskState if state is not TaskState.READY]
    await given(store, *(a_task(state=state) for state in states))
    await given(store, a_task(format=FORMAT_MAX + 1))

    assert await claimed(store) == []


async def test_small_inputs_come_along_with_a_claim(store: Store) -> None:
    small, large = a_run(), a_run()
    inputs = {small.id: b"7" * INPUT_BYTES_MAX, large.id: b"7" * (INPUT_BYTES_MAX + 1)}
    async with store.transaction() as tx:
        await tx.runs.add([NewRun(run=run, input=inputs[run.id]) for run in (small, large)])
    await given(store, a_task(run_id=small.id), a_task(run_id=large.id))

    async with store.transaction() as tx:
        claim = await tx.tasks.claim(LANE, floor=0, limit=10, alone=False)

    assert claim.inputs == {small.id: inputs[small.id]}
    assert claim.runs == [small, large]
