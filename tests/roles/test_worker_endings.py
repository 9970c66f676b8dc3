"""How attempts end when they are asked to stop, and how a worker leaves."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.roles.worker_stage import Doing, a_token, an_assignment, on_stage, on_virtual_time
from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded
from tidemill.domain.identifiers import RunId, Token
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import Cancels, Goodbye, Holdings
from tidemill.sdk.context import Voice
from tidemill.worker.executor import Call
from tidemill.worker.shift import Departure
from tidemill.worker.slots import Slots
from tidemill.worker.threads import Threads


async def forever(call: Call) -> None:
    await asyncio.Event().wait()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opens at the end of the test at the latest, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()


def blocking(gate: threading.Event) -> Doing:
    threads = Threads(8)

    async def block(call: Call) -> None:
        await threads.run(gate.wait)

    return Doing(block)


async def test_an_attempt_past_its_time_is_a_timeout() -> None:
    async with on_stage(forever) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(attempt_seconds=0.05))

        report = (await stream.outcome()).report

    assert isinstance(report, Failed)
    assert (report.timeout, report.error.type) == (True, "AttemptTimeout")
    assert "longer than its 0.05 s" in report.error.message


async def test_an_attempt_without_heartbeats_is_a_timeout() -> None:
    async with on_stage(forever) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(heartbeat_seconds=0.05))

        report = (await stream.outcome()).report

    assert isinstance(report, Failed)
    assert (report.timeout, report.error.type) == (True, "HeartbeatTimeout")


def test_heartbeats_and_progress_keep_an_attempt_alive() -> None:
    async def beat(call: Call) -> str:
        for number in range(6):
            await asyncio.sleep(0.06)  # neither would be enough without the other
            call.context.heartbeat() if number % 2 else call.context.progress(number / 10)
        return "alive"

    async def live(clock: Clock) -> None:
        async with on_stage(beat, clock=clock) as (stage, _):
            stream = await stage.welcome()
            stream.assign(an_assignment(heartbeat_seconds=0.1))

            assert (await stream.outcome()).report == Succeeded(1, b'"alive"')

    on_virtual_time(live)


async def test_a_task_that_swallows_its_cancellation_and_succeeds_has_succeeded() -> None:
    async def finish_anyway(call: Call) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done" if call.context.cancelled else "?"

    async with on_stage(finish_anyway) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())
        await stream.hear(Holdings, lambda message: bool(message.held))
        stream.say(Cancels((a_token(),)))

        assert (await stream.outcome()).report == Succeeded(1, b'"done"')


async def test_a_task_that_cancels_itself_has_failed() -> None:
    async def give_up(call: Call) -> None:
        raise asyncio.CancelledError

    async with on_stage(give_up) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())

        report = (await stream.outcome()).report

    assert isinstance(report, Failed)
    assert report.error.type == "CancelledError"


async def test_a_thread_past_its_timeout_keeps_its_slot(gate: threading.Event) -> None:
    async with on_stage({"do": blocking(gate)}, slots=8) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(attempt_seconds=0.05))
        report = (await stream.outcome()).report
        stuck = await stream.hear(Holdings, lambda message: message.slots == 7)
        stream.heard.clear()
        gate.set()

        freed = await stream.hear(Holdings, lambda message: message.slots == 8)

    assert isinstance(report, Failed)
    assert report.timeout
    assert (stuck.slots, freed.slots) == (7, 8)


async def test_the_scheduler_hears_of_a_lost_slot_before_the_outcome(
    gate: threading.Event,
) -> None:
    async with on_stage({"do": blocking(gate)}, slots=8, holdings_seconds=60) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(attempt_seconds=0.01))
        await stream.outcome()

    kinds = [type(m).__name__ for m in stream.heard if type(m).__name__ != "Ping"]
    assert kinds == ["Hello", "Holdings", "Outcomes"]


async def test_a_thread_that_ignores_a_cancel_is_confirmed_and_stuck(
    gate: threading.Event,
) -> None:
    async with on_stage({"do": blocking(gate)}, slots=8) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())
        await stream.hear(Holdings, lambda message: bool(message.held))
        stream.say(Cancels((a_token(),)))

        outcome = await stream.outcome()
        await stream.hear(Holdings, lambda message: message.slots == 7)

    assert outcome.report == CancelConfirmed(1)


async def test_a_worker_with_a_quarter_of_its_slots_stuck_leaves(gate: threading.Event) -> None:
    async with on_stage({"do": blocking(gate)}, slots=4) as (stage, running):
        stream = await stage.welcome()
        stream.assign(an_assignment(attempt_seconds=0.05))
        await stream.outcome()
        stream.acknowledge(a_token())
        goodbye = await stream.hear(Goodbye)
        stream.hang_up()

        assert await asyncio.wait_for(running, 2) is Departure.WORN_OUT
        assert goodbye.released == ()


async def test_a_draining_worker_lets_tasks_finish() -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> str:
        await gate.wait()
        return "done"

    async with on_stage(wait) as (stage, running):
        stream = await stage.welcome()
        stream.assign(an_assignment())
        await stream.hear(Holdings, lambda message: message.held == (a_token(),))
        leaving = asyncio.create_task(stage.worker.drain(5))
        await stream.hear(Holdings, lambda message: message.slots == 0)
        gate.set()
        outcome = await stream.outcome()
        stream.acknowledge(a_token())
        goodbye = await stream.hear(Goodbye)
        stream.hang_up()

        assert await asyncio.wait_for(running, 2) is Departure.DRAINED
        await leaving
    assert (outcome.report, goodbye.released) == (Succeeded(1, b'"done"'), ())


async def test_a_draining_worker_hands_back_what_does_not_finish() -> None:
    async with on_stage(forever) as (stage, running):
        stream = await stage.welcome()
        stream.assign(an_assignment(0), an_assignment(1))
        await stream.hear(Holdings, lambda message: len(message.held) == 2)
        leaving = asyncio.create_task(stage.worker.drain(0.02))
        goodbye = await stream.hear(Goodbye)
        stream.hang_up()

        assert await asyncio.wait_for(running, 2) is Departure.DRAINED
        await leaving
    assert set(goodbye.released) == {a_token(0), a_token(1)}


async def test_a_draining_worker_takes_nothing_new() -> None:
    async with on_stage(forever) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(0))
        await stream.hear(Holdings, lambda message: bool(message.held))
        leaving = asyncio.create_task(stage.worker.drain(5))
        await stream.hear(Holdings, lambda message: message.slots == 0)
        stream.assign(an_assignment(1))

        outcome = await stream.outcome(1)
        leaving.cancel()

    assert outcome.report == Released(1)


async def test_a_worker_leaves_although_nobody_answers_its_goodbye() -> None:
    async with on_stage(forever, goodbye_seconds=0.1) as (stage, running):
        await stage.welcome()
        await stage.worker.drain(0)

        assert await asyncio.wait_for(running, 2) is Departure.DRAINED


async def test_an_outcome_unacknowledged_at_goodbye_is_repeated_once_more() -> None:
    async def number(call: Call) -> int:
        return 1

    async with on_stage(number) as (stage, running):
        first = await stage.welcome()
        first.assign(an_assignment())
        outcome = await first.outcome()
        leaving = asyncio.create_task(stage.worker.drain(1))
        await first.hear(Goodbye)
        first.hang_up()
        second = await stage.welcome(acknowledged=(a_token(),))
        await second.hear(Goodbye)
        second.hang_up()

        assert await asyncio.wait_for(running, 2) is Departure.DRAINED
        await leaving
    assert (await second.hello()).finished == (outcome,)


@pytest.mark.parametrize(
    ("total", "stuck", "worn_out"),
    [(1, 0, False), (1, 1, True), (4, 1, True), (8, 1, False), (8, 2, True), (64, 15, False)],
)
def test_a_worker_is_worn_out_when_a_quarter_of_its_slots_are_stuck(
    total: int, stuck: int, worn_out: bool
) -> None:
    slots = Slots(total)
    for position in range(stuck):
        token = Token(RunId("r"), position, 1)
        slots.take(token)
        slots.mark_stuck(token)

    assert (slots.worn_out, slots.usable) == (worn_out, total - stuck)


async def test_an_attempt_that_has_ended_leaves_nothing_to_the_collector_of_cycles() -> None:
    seen: list[weakref.ref[Voice]] = []

    async def look(call: Call) -> None:
        seen.append(weakref.ref(call.context.voice))

    gc.disable()
    try:
        async with on_stage(look) as (stage, _):
            stream = await stage.welcome()
            stream.assign(an_assignment())
            await stream.outcome()
            await asyncio.sleep(0)

            assert [one() for one in seen] == [None]
    finally:
        gc.enable()
