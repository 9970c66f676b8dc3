"""Workers hear of it when what they run is stopped, whichever scheduler stops it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.roles.mill import Mill, Stream, a_step, on_a_mill
from tidemill.domain.identifiers import Token
from tidemill.domain.workflow import Timeouts
from tidemill.engine import runs
from tidemill.ports.bus import Hint
from tidemill.protocol.messages import Cancels
from tidemill.scheduler.service import Scheduler

PROMPT_SECONDS = 0.5
RUNS = 20  # both schedulers have a hand in them


@asynccontextmanager
async def a_second_scheduler(mill: Mill) -> AsyncIterator[Scheduler]:
    second = mill.a_scheduler("second")
    duties = asyncio.create_task(second.run())
    try:
        yield second
    finally:
        duties.cancel()


async def asked_to_stop(worker: Stream, count: int) -> set[Token]:
    """The tokens that the worker is asked to stop, as soon as there are so many."""
    asked: set[Token] = set()
    async with asyncio.timeout(PROMPT_SECONDS):
        while len(asked) < count:
            asked.update((await worker.receive(Cancels)).tokens)
    return asked


@on_a_mill
async def test_whoever_cancels_a_run_its_workers_are_asked_to_stop_at_once(mill: Mill) -> None:
    async with a_second_scheduler(mill) as second:
        worker = mill.worker(second, slots=RUNS)
        await worker.open()
        begun = [await mill.start(a_step("long")) for _ in range(RUNS)]
        tokens = {one.token for one in await worker.assignments(RUNS)}

        for run_id in begun:
            await runs.cancel(mill.store, mill.bus, "default", run_id)

        assert await asked_to_stop(worker, RUNS) == tokens


@on_a_mill
async def test_whoever_times_a_task_out_its_worker_is_asked_to_stop_at_once(mill: Mill) -> None:
    async with a_second_scheduler(mill) as second:
        worker = mill.worker(second, slots=RUNS)
        await worker.open()
        for _ in range(RUNS):
            await mill.start(a_step("long", timeouts=Timeouts(attempt_seconds=30)))
        tokens = {one.token for one in await worker.assignments(RUNS)}

        first = await worker.receive(Cancels)

        assert tokens == {*first.tokens, *await asked_to_stop(worker, RUNS - len(first.tokens))}


@on_a_mill
async def test_a_hint_at_a_run_stops_nothing_that_may_go_on(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("long"))
    token = (await worker.assignment()).token

    await mill.bus.send_hint(Hint(runs=(run_id,)))
    await mill.clock.sleep(PROMPT_SECONDS)

    await worker.succeed(token)
    assert (await mill.ended(run_id)).state == "SUCCEEDED"
