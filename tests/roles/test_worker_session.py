"""A worker's session: Hello, work, reconnects, and the outcomes that it keeps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.roles.worker_stage import a_token, an_assignment, on_stage, on_virtual_time
from tidemill.domain.events import CancelConfirmed, Released, Succeeded
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import (
    Acks,
    Assignments,
    Cancels,
    Holdings,
    Logs,
    Outcomes,
    Ping,
    Progress,
    Refused,
)
from tidemill.worker.executor import Call
from tidemill.worker.link import WorkerRefused
from tidemill.worker.session import BEGIN_AT_ONCE


async def double(call: Call) -> Any:
    return call.params.get("number", 21) * 2


async def forever(call: Call) -> None:
    await asyncio.Event().wait()


async def test_a_worker_introduces_itself() -> None:
    async with on_stage(double, queues=("fast",), labels={"zone": "eu"}) as (stage, _):
        hello = await (await stage.door.next_stream()).hello()

    assert (hello.worker, hello.slots, hello.queues) == ("w1", 4, ("fast",))
    assert (hello.labels, hello.executors, hello.session) == ({"zone": "eu"}, ("do",), None)


async def test_an_assignment_is_run_and_its_result_reported() -> None:
    async with on_stage(double) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(params=b'{"number": 4}'))

        outcome = await stream.outcome()

    assert outcome.report == Succeeded(1, b"8")


async def test_outcomes_that_end_together_travel_together() -> None:
    async with on_stage(double) as (stage, _):
        stream = await stage.welcome()
        stream.assign(*map(an_assignment, range(4)))

        outcome = await stream.outcome(position=3)

    batches = [len(m.outcomes) for m in stream.heard if hasattr(m, "outcomes")]
    assert outcome.report == Succeeded(1, b"42")
    assert batches == [4]


async def test_an_unacknowledged_outcome_is_repeated_after_a_reconnect() -> None:
    async with on_stage(double) as (stage, _):
        first = await stage.welcome()
        first.assign(an_assignment())
        outcome = await first.outcome()
        first.hang_up()

        hello = await (await stage.door.next_stream()).hello()

    assert hello.finished == (outcome,)
    assert (hello.session, hello.secret, hello.held) == ("s1", "secret", ())


async def test_an_acknowledged_outcome_is_forgotten() -> None:
    async with on_stage(double) as (stage, _):
        first = await stage.welcome()
        first.assign(an_assignment())
        await first.outcome()
        first.acknowledge(a_token())
        await first.hear(Holdings, lambda message: message.held == ())
        first.hang_up()

        hello = await (await stage.door.next_stream()).hello()

    assert hello.finished == ()


async def test_an_outcome_acknowledged_along_with_assignments_is_forgotten() -> None:
    async with on_stage(double) as (stage, _):
        first = await stage.welcome()
        first.assign(an_assignment(0))
        await first.outcome(0)
        first.say(Assignments((an_assignment(1),), Acks((a_token(0),))))
        await first.outcome(1)
        first.hang_up()

        hello = await (await stage.door.next_stream()).hello()

    assert hello.joins_acks
    assert [outcome.token for outcome in hello.finished] == [a_token(1)]


async def test_of_many_short_tasks_the_first_are_reported_while_others_begin() -> None:
    async with on_stage(double, slots=200) as (stage, _):
        stream = await stage.welcome()
        stream.assign(*map(an_assignment, range(200)))

        await stream.outcome(position=199)

    batches = [len(m.outcomes) for m in stream.heard if isinstance(m, Outcomes)]
    assert batches[0] == BEGIN_AT_ONCE
    assert sum(batches) == 200


async def test_outcomes_too_large_for_one_hello_count_as_held_and_follow() -> None:
    async with on_stage(double, outcomes_bytes_max=10, result_bytes_max=10) as (stage, _):
        first = await stage.welcome()
        first.assign(an_assignment(0), an_assignment(1))
        await first.outcome(1)
        first.hang_up()

        second = await stage.welcome(keep=(a_token(1),), acknowledged=(a_token(0),))
        hello = await second.hello()
        followed = await second.outcome(1)

    assert [outcome.token for outcome in hello.finished] == [a_token(0)]
    assert hello.held == (a_token(1),)
    assert followed.report == Succeeded(1, b"42")


async def test_a_running_task_is_kept_over_a_reconnect() -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> str:
        await gate.wait()
        return "done"

    async with on_stage(wait) as (stage, _):
        first = await stage.welcome()
        first.assign(an_assignment())
        await first.hear(Holdings, lambda message: message.held == (a_token(),))
        first.hang_up()
        second = await stage.welcome(keep=(a_token(),))
        gate.set()

        outcome = await second.outcome()

    assert (await second.hello()).held == (a_token(),)
    assert outcome.report == Succeeded(1, b'"done"')


async def test_what_a_scheduler_does_not_keep_is_stopped_and_never_reported() -> None:
    stopped = asyncio.Event()

    async def wait(call: Call) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with on_stage(wait) as (stage, _):
        first = await stage.welcome()
        first.assign(an_assignment())
        await first.hear(Holdings, lambda message: message.held == (a_token(),))
        first.hang_up()
        second = await stage.welcome(keep=())

        await asyncio.wait_for(stopped.wait(), 2)
        await second.hear(Holdings, lambda message: message.held == ())

    assert not [m for m in second.heard if hasattr(m, "outcomes")]


def test_a_silent_scheduler_is_left() -> None:
    async def live(clock: Clock) -> None:
        async with on_stage(double, clock=clock, silence_seconds=3) as (stage, _):
            stage.door.pings = False
            first = await stage.welcome()
            await first.hear(Ping)

            hello = await (await stage.door.next_stream()).hello()
            assert hello.session == "s1"

    on_virtual_time(live)


async def test_a_refused_worker_ends_and_says_why() -> None:
    async with on_stage(double) as (stage, running):
        stream = await stage.door.next_stream()
        stream.say(Refused("protocol 1 is too old; install a newer release"))

        with pytest.raises(WorkerRefused, match="install a newer release"):
            await asyncio.wait_for(running, 2)


async def test_an_idle_worker_pings() -> None:
    async with on_stage(double) as (stage, _):
        stream = await stage.welcome()

        assert await stream.hear(Ping) == Ping()


async def test_a_token_already_held_is_not_started_again() -> None:
    calls = 0

    async def count(call: Call) -> int:
        nonlocal calls
        calls += 1
        return calls

    async with on_stage(count) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(), an_assignment())
        await stream.outcome()
        stream.assign(an_assignment(), an_assignment(1))
        await stream.outcome(1)

    assert calls == 2


async def test_more_assignments_than_slots_are_handed_back() -> None:
    async with on_stage(forever, slots=1) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(0), an_assignment(1))

        outcome = await stream.outcome(1)

    assert outcome.report == Released(1)


async def test_a_cancel_stops_the_task_and_is_confirmed() -> None:
    async with on_stage(forever) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())
        stream.say(Cancels((a_token(), a_token(7))))

        outcome = await stream.outcome()

    assert outcome.report == CancelConfirmed(1)


async def test_what_finished_before_a_cancel_is_reported_as_it_ended() -> None:
    async with on_stage(double) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())
        outcome = await stream.outcome()
        stream.say(Cancels((a_token(),)))
        await stream.hear(Holdings)

    assert outcome.report == Succeeded(1, b"42")


async def test_progress_and_text_arrive_before_the_outcome() -> None:
    async def talk(call: Call) -> None:
        call.context.progress(0.5, "half way")
        call.context.logger.info("hello")

    async with on_stage(talk) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())
        await stream.outcome()

    kinds = [type(m).__name__ for m in stream.heard if type(m).__name__ != "Ping"]
    logs = next(m for m in stream.heard if isinstance(m, Logs))
    assert kinds[:4] == ["Hello", "Logs", "Progress", "Outcomes"]
    assert logs.chunks[0].text.endswith("INFO hello\n")


async def test_progress_of_a_running_task_is_sent_without_waiting_for_its_end() -> None:
    async def talk(call: Call) -> None:
        call.context.progress(2.0, "more than all")
        await asyncio.Event().wait()

    async with on_stage(talk) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment())

        message = await stream.hear(Progress)

    assert [(r.fraction, r.message) for r in message.reports] == [(1.0, "more than all")]


def test_who_was_told_of_a_lost_scheduler_hears_that_there_is_one_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live(clock: Clock) -> None:
        async with on_stage(double, clock=clock, silence_seconds=3) as (stage, _):
            stage.door.pings = False
            await stage.welcome()
            stage.door.pings = True
            again = await stage.welcome()
            await again.hear(Ping)

    on_virtual_time(live)

    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert told[0] == "connection lost: the scheduler fell silent; trying on"
    assert told[1].startswith("connected to ")
