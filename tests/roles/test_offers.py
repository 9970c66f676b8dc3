"""Routing by what workers offer: a task that nobody offers waits, and goes to nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.roles.broker_mill import BrokerMill, on_a_broker_mill
from tests.roles.mill import Mill, a_step, on_a_mill
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import TaskSpec
from tidemill.engine.waiting import explain_waits
from tidemill.scheduler.config import SchedulerConfig


def a_call(name: str, function: str, *parents: str, **fields: Any) -> TaskSpec:
    """A task that calls a function."""
    params = {"function": function}
    return TaskSpec(id=name, executor="python", params=params, depends_on=parents, **fields)


@on_a_mill
async def test_a_task_that_nobody_offers_waits_until_somebody_does(mill: Mill) -> None:
    stranger = mill.worker(executors=("shell",), offers=("python:flow:load",))
    await stranger.open()
    run_id = await mill.start(a_call("extract", "flow:extract"))

    assert await stranger.nothing_comes(30)
    assert (await mill.task(run_id)).state is TaskState.READY
    helper = mill.worker(offers=("python:flow:extract",))
    await helper.open()
    await helper.succeed((await helper.assignment()).token)

    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_each_task_goes_to_the_worker_that_offers_it(mill: Mill) -> None:
    loader = mill.worker(offers=("python:flow:load",))
    extractor = mill.worker(offers=("python:flow:extract",))
    await loader.open()
    await extractor.open()
    run_id = await mill.start(
        a_call("extract", "flow:extract"), a_call("load", "flow:load", "extract")
    )

    await extractor.succeed((await extractor.assignment()).token)
    await loader.succeed((await loader.assignment()).token)

    assert (await mill.ended(run_id)).state == "SUCCEEDED"


@on_a_mill
async def test_an_executor_without_functions_is_offered_whole(mill: Mill) -> None:
    worker = mill.worker(executors=("python",))
    await worker.open()

    await mill.start(a_call("extract", "flow:extract"))

    assert (await worker.assignment()).task == "extract"


@on_a_mill
async def test_a_worker_that_names_no_offers_is_taken_to_run_anything(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()

    await mill.start(a_call("extract", "flow:extract"), a_step("other"))

    assert {one.task for one in await worker.assignments(2)} == {"extract", "other"}


@on_a_mill
async def test_a_task_of_a_former_release_goes_to_any_worker_of_its_queue(mill: Mill) -> None:
    run_id = await mill.start(a_call("extract", "flow:extract"))
    mill.store._writer.raw.execute("UPDATE task SET route = 'default'")  # as it was
    worker = mill.worker(offers=("python:flow:load",))
    await worker.open()

    assert (await worker.assignment()).token.run_id == run_id


@on_a_mill
async def test_output_is_evaluated_by_any_worker(mill: Mill) -> None:
    worker = mill.worker(offers=("python:flow:extract",))
    await worker.open()
    await mill.start(a_call("extract", "flow:extract"), output="extract")

    await worker.succeed((await worker.assignment()).token, result=1)

    assert (await worker.assignment()).executor == "$output"


@on_a_mill
async def test_tasks_that_nobody_offers_hold_no_others_up(mill: Mill) -> None:
    worker = mill.worker(executors=("noop",), slots=1)
    await worker.open()
    await mill.start(*(a_call(f"t{n}", "flow:extract", priority=5) for n in range(50)))

    run_id = await mill.start(a_step("first"), a_step("second", "first"))
    for _ in range(2):
        await worker.succeed((await worker.assignment(seconds_max=5)).token)

    assert (await mill.ended(run_id, 5)).state == "SUCCEEDED"


@on_a_mill
async def test_what_becomes_ready_does_not_overtake_what_waits_for_the_same_worker(
    mill: Mill,
) -> None:
    worker = mill.worker(offers=("python:f:a", "python:f:b"), slots=1)
    await worker.open()
    await mill.start(a_call("first", "f:a"), a_call("second", "f:a", "first"))
    running = await worker.assignment()
    waiting = await mill.start(a_call("waiting", "f:b"))
    await mill.clock.sleep(3)

    await worker.succeed(running.token)

    assert (await worker.assignment()).token.run_id == waiting


@on_a_mill
async def test_people_are_told_what_a_task_waits_for(mill: Mill) -> None:
    worker = mill.worker(executors=("noop",), offers=("python:flow:load",), slots=1)
    await worker.open()
    run_id = await mill.start(
        a_call("extract", "flow:extract"),
        a_step("far", queue="gpu"),
        a_step("one"),
        a_step("two"),
    )
    await worker.assignment()
    tasks = await mill.store.reader.tasks("default", run_id, -1, 10)

    waits = await explain_waits(mill.store, "default", tasks)

    assert waits == {
        "default!python:flow:extract": "no worker offers python flow:extract on queue default: "
        "start one with --import of module flow",
        "gpu!noop": "no worker serves queue gpu",
        "default!noop": "the only slot is busy",
    }


@on_a_mill
async def test_a_session_keeps_what_its_worker_offers(mill: Mill) -> None:
    worker = mill.worker(executors=("noop",), offers=("python:flow:load",))
    await worker.open()

    (session,) = await mill.store.reader.sessions("default")

    assert session.offers == ("noop", "python:flow:load")


@pytest.mark.parametrize(
    ("offers", "reason"),
    [
        (("python:flow",), "offer 'python:flow' is malformed: write executor:module:function"),
        ((":a:b",), "offer ':a:b' is malformed: write executor:module:function"),
        (("spark:a:b",), "executor 'spark' is not known here, only python"),
        (("python:a:b",) * 10_001, "a worker may offer 10000 functions, not 10001"),
    ],
)
def test_an_offer_that_makes_no_sense_is_refused(offers: tuple[str, ...], reason: str) -> None:
    async def refused(mill: Mill) -> None:
        assert await mill.worker(offers=offers).refused() == reason

    on_a_mill(refused, SchedulerConfig(executors_allowed=("python",)))()


LOADS = {"python": ("flow:load",)}
EXTRACTS = {"python": ("flow:extract",)}


@on_a_broker_mill
async def test_over_a_broker_a_command_ends_with_a_worker_that_offers_it(
    stage: BrokerMill,
) -> None:
    stage.hire("loader", functions=LOADS)
    stage.hire("extractor", functions=EXTRACTS)
    tasks = [a_call(f"t{n}", f"flow:{'load' if n % 2 else 'extract'}") for n in range(20)]

    run_id = await stage.mill.start(*tasks)

    assert (await stage.mill.ended(run_id)).state == "SUCCEEDED"
    assert set(stage.ran) == {("loader" if n % 2 else "extractor", f"t{n}") for n in range(20)}
    assert await stage.spent(run_id) == (0, 0)


@on_a_broker_mill
async def test_over_a_broker_a_task_waits_for_a_worker_that_offers_it(stage: BrokerMill) -> None:
    stage.hire("loader", functions=LOADS)
    run_id = await stage.mill.start(a_call("extract", "flow:extract"))

    await stage.mill.clock.sleep(30)
    assert stage.broker.on("tasks.default.default") == []
    stage.hire("extractor", functions=EXTRACTS)

    assert (await stage.mill.ended(run_id)).state == "SUCCEEDED"


@on_a_broker_mill
async def test_over_a_broker_free_slots_of_others_are_not_counted_on(stage: BrokerMill) -> None:
    stage.hire("loader", functions=LOADS, slots=50)
    stage.hire("extractor", functions=EXTRACTS, slots=2)
    stage.gate.clear()
    await stage.mill.start(*(a_call(f"t{n}", "flow:extract") for n in range(40)))
    await stage.begun(2)

    run_id = await stage.mill.start(a_call("load", "flow:load"))
    await stage.begun(3, 5)
    stage.gate.set()

    assert (await stage.mill.ended(run_id, 5)).state == "SUCCEEDED"
    assert stage.ran[2] == ("loader", "load")


@on_a_broker_mill
async def test_over_a_broker_nothing_circles_for_ever(stage: BrokerMill) -> None:
    """The only worker that offered it dies with the command under way."""
    stage.hire("loader", functions=LOADS)
    extractor = stage.hire("extractor", functions=EXTRACTS)
    await stage.mill.clock.sleep(3)
    extractor.kill()
    run_id = await stage.mill.start(a_call("extract", "flow:extract"))
    await stage.mill.clock.sleep(60)

    sent = len(stage.broker.on("tasks.default.default"))
    await stage.mill.clock.sleep(60)

    assert len(stage.broker.on("tasks.default.default")) == sent
    assert (await stage.mill.task(run_id)).state is TaskState.READY
