"""Short tasks that a worker takes ahead of its slots, and what becomes of them there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.roles.worker_stage import Doing, Stage, Stream, a_token, an_assignment, on_stage
from tidemill.domain.events import CancelConfirmed, Released, Succeeded
from tidemill.protocol.messages import Cancels, Holdings, Outcomes
from tidemill.runtime.system import SystemClock
from tidemill.worker import session
from tidemill.worker.ahead import (
    AHEAD_MAX,
    AHEAD_PER_SLOT,
    LONG_SECONDS,
    MEAN_OF,
    REST_SECONDS,
    SHORT_SECONDS,
    Ahead,
    Pace,
)
from tidemill.worker.config import WorkerConfig
from tidemill.worker.crew import Crew
from tidemill.worker.executor import Call

SLOTS = 2
WANTED = SLOTS * (1 + AHEAD_PER_SLOT)
WARM_UP = 100
"""Where the positions of the tasks begin that make a worker brisk."""
TASKS_MAX = 1_000
"""Enough of them to forget a hiccup of the machine."""


class Play:
    """A brisk worker of two slots, and when its tasks of a lower position may end."""

    def __init__(self, stage: Stage, stream: Stream, gate: asyncio.Event, begun: list[int]) -> None:
        self.stage = stage
        self.stream = stream
        self.gate = gate
        self.begun = begun


@asynccontextmanager
async def brisk_worker(ahead_seconds: float = 5.0) -> AsyncIterator[Play]:
    gate, begun = asyncio.Event(), list[int]()

    async def do(call: Call) -> None:
        position = call.context.token.position
        if position < WARM_UP:
            begun.append(position)
            await gate.wait()

    async with on_stage(do, slots=SLOTS, ahead_seconds=ahead_seconds) as (stage, _):
        stream = await stage.welcome()
        for place in range(WARM_UP, WARM_UP + TASKS_MAX):
            stream.assign(an_assignment(place))
            await stream.outcome(place)
            if place > WARM_UP + MEAN_OF and stage.worker._crew.wanted == WANTED:
                break
        await stream.hear(Holdings, lambda message: message.slots == WANTED)
        yield Play(stage, stream, gate, begun)


async def test_a_worker_of_short_tasks_asks_for_more_and_begins_it_in_order() -> None:
    async with brisk_worker() as play:
        play.stream.assign(*map(an_assignment, range(WANTED)))
        await play.stream.hear(Holdings, lambda message: a_token(WANTED - 1) in message.held)
        at_first = list(play.begun)
        play.gate.set()

        last = await play.stream.outcome(WANTED - 1)

    assert at_first == [0, 1]
    assert play.begun == list(range(WANTED))
    assert last.report == Succeeded(1, None)


async def test_outcomes_of_short_tasks_gather_while_others_wait_for_a_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "GATHER_SECONDS", 60.0)
    async with brisk_worker() as play:
        places = range(WARM_UP + TASKS_MAX, WARM_UP + TASKS_MAX + WANTED)
        play.stream.assign(*map(an_assignment, places))

        await play.stream.outcome(places[-1])

    told = [m for m in play.stream.heard if isinstance(m, Outcomes)]
    assert sum(any(one.token.position in places for one in m.outcomes) for m in told) <= 2


async def test_an_outcome_does_not_wait_for_tasks_that_turn_out_to_be_long() -> None:
    ahead_seconds = 60.0
    async with brisk_worker(ahead_seconds) as play:
        short = WARM_UP + TASKS_MAX
        play.stream.assign(*map(an_assignment, (0, short, 1, 2)))

        outcome = await play.stream.outcome(short)
        waits = play.stage.worker._crew.waiting

    assert (outcome.report, waits) == (Succeeded(1, None), 1)


async def test_what_finds_no_slot_soon_goes_back_after_the_lower_number_was_told() -> None:
    async with brisk_worker(ahead_seconds=0.05) as play:
        play.stream.assign(*map(an_assignment, range(4)))

        outcome = await play.stream.outcome(3)

    heard = play.stream.heard
    told = [place for place, m in enumerate(heard) if isinstance(m, Holdings) and m.slots == SLOTS]
    handed_back = next(m for m in heard if isinstance(m, Outcomes) and outcome in m.outcomes)
    assert outcome.report == Released(1)
    assert [one.token.position for one in handed_back.outcomes] == [2, 3]
    assert heard[heard.index(handed_back) - 1] is heard[max(told)]
    assert play.begun == [0, 1]


async def test_more_than_was_asked_for_goes_back_at_once() -> None:
    async with brisk_worker() as play:
        play.stream.assign(*map(an_assignment, range(WANTED + 1)))
        outcome = await play.stream.outcome(WANTED)
        held = await play.stream.hear(Holdings, lambda message: a_token(0) in message.held)

    assert outcome.report == Released(1)
    assert a_token(WANTED - 1) in held.held


async def test_what_waits_is_cancelled_at_once() -> None:
    async with brisk_worker() as play:
        play.stream.assign(*map(an_assignment, range(4)))
        play.stream.say(Cancels((a_token(3),)))
        outcome = await play.stream.outcome(3)
        play.gate.set()
        await play.stream.outcome(2)

    assert outcome.report == CancelConfirmed(1)
    assert play.begun == [0, 1, 2]


async def test_a_worker_that_drains_hands_back_what_waits_and_ends_what_runs() -> None:
    async with brisk_worker() as play:
        play.stream.assign(*map(an_assignment, range(3)))
        await play.stream.hear(Holdings, lambda message: a_token(2) in message.held)
        draining = asyncio.create_task(play.stage.worker.drain(5))
        outcome = await play.stream.outcome(2)
        play.gate.set()
        ended = await play.stream.outcome(1)
        draining.cancel()

    assert outcome.report == Released(1)
    assert ended.report == Succeeded(1, None)


async def test_what_waits_is_kept_over_a_reconnect_or_dropped_without_a_word() -> None:
    async with brisk_worker() as play:
        play.stream.assign(*map(an_assignment, range(4)))
        await play.stream.hear(Holdings, lambda message: a_token(3) in message.held)
        play.stream.hang_up()
        again = await play.stage.door.next_stream()
        hello = await again.hello()
        again.welcome(keep=(a_token(0), a_token(1), a_token(2)))
        told = await again.hear(Holdings)
        play.gate.set()
        await again.outcome(2)

    assert (hello.slots, told.slots) == (SLOTS, WANTED)
    assert play.begun == [0, 1, 2]


async def test_a_worker_of_long_tasks_asks_for_its_slots_alone() -> None:
    async def slow(call: Call) -> None:
        await asyncio.sleep(2 * LONG_SECONDS)

    async with on_stage(slow, slots=SLOTS) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(0), an_assignment(1), an_assignment(2))
        await stream.outcome(1)
        told = await stream.hear(Holdings)

    assert (await stream.outcome(2)).report == Released(1)
    assert told.slots == SLOTS


async def test_a_crew_behind_a_broker_takes_nothing_ahead() -> None:
    gate = asyncio.Event()

    async def do(call: Call) -> None:
        if call.context.token.position < WARM_UP:
            await gate.wait()

    crew = Crew(WorkerConfig(name="w", slots=1), {"do": Doing(do)}, SystemClock())
    for position in range(WARM_UP, WARM_UP + 40):
        crew.take([an_assignment(position)])
        await crew.idle.wait()
        await asyncio.sleep(0)
    crew.take([an_assignment(0), an_assignment(1)])

    assert (crew.wanted, crew.slots_changed) == (1, False)
    assert a_token(1) in crew.ledger
    gate.set()
    await crew.idle.wait()


async def test_a_crew_is_not_idle_while_something_waits_for_code_that_was_abandoned() -> None:
    gate = asyncio.Event()

    async def do(call: Call) -> None:
        while call.context.token.position == 0 and not gate.is_set():
            with suppress(asyncio.CancelledError):
                await gate.wait()

    config = WorkerConfig(name="w", slots=1, ahead_seconds=5.0)
    crew = Crew(config, {"do": Doing(do)}, SystemClock(), takes_ahead=True)
    for position in range(WARM_UP, WARM_UP + TASKS_MAX):
        crew.take([an_assignment(position)])
        await crew.idle.wait()
        if position > WARM_UP + MEAN_OF and crew.wanted > 1:
            break
    crew.take([an_assignment(0)])
    await asyncio.sleep(0)
    crew.abandon([a_token(0)])
    crew.take([an_assignment(1)])

    assert (crew.wanted, crew.attempts, crew.idle.is_set()) == (1 + AHEAD_PER_SLOT, (), False)
    gate.set()
    await crew.idle.wait()
    assert a_token(1) in crew.ledger


@pytest.mark.parametrize(
    ("seconds", "attempts", "brisk"),
    [(0.001, 3, False), (0.001, 4, True), (SHORT_SECONDS, 100, False), (LONG_SECONDS, 100, False)],
)
def test_a_worker_is_brisk_once_enough_short_tasks_have_ended(
    seconds: float, attempts: int, brisk: bool
) -> None:
    pace = Pace(attempts_min=4)

    for _ in range(attempts):
        pace.note(seconds, now=0.0)

    assert pace.brisk is brisk


def test_a_brisk_worker_stays_so_until_its_tasks_are_clearly_longer() -> None:
    pace = Pace(attempts_min=1)
    pace.note(0.001, now=0.0)

    seen = []
    for _ in range(200):
        pace.note(0.006, now=0.0)
        seen.append(pace.brisk)
    pace.note(1.0, now=0.0)

    assert all(seen)
    assert not pace.brisk


def test_a_brisk_worker_stays_so_when_its_process_had_to_wait_for_a_moment() -> None:
    pace = Pace(attempts_min=1)
    for _ in range(MEAN_OF):
        pace.note(0.001, now=0.0)

    seen = []
    for _ in range(64):
        pace.note(0.015, now=0.0)
        seen.append(pace.brisk)

    assert all(seen)


def test_a_worker_that_handed_something_back_rests() -> None:
    pace = Pace(attempts_min=1)
    pace.rest(now=10.0)

    pace.note(0.001, now=10.0 + REST_SECONDS / 2)
    resting = pace.brisk
    pace.note(0.001, now=10.0 + REST_SECONDS)

    assert (resting, pace.brisk) == (False, True)


@pytest.mark.parametrize(
    ("slots", "wanted"), [(1, AHEAD_PER_SLOT), (64, AHEAD_MAX), (1_000, AHEAD_MAX)]
)
def test_how_much_is_taken_ahead_is_bounded(slots: int, wanted: int) -> None:
    ahead = Ahead(slots, 0.05, SystemClock(), on_late=lambda: None)

    before = ahead.wanted
    changes = [ahead.note(0.001, now=0.0) for _ in range(slots)]

    assert (before, ahead.wanted, changes.count(True)) == (0, wanted, 1)
