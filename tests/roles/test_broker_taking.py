"""What a worker takes from a broker, what it keeps in hand, and what it passes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from tests.roles.worker_stage import Doing, an_assignment
from tidemill.buses.memory import MemoryBroker
from tidemill.domain.errors import Unavailable
from tidemill.domain.pools import pool_key
from tidemill.ports.broker import Message
from tidemill.protocol.broker_codec import command_of
from tidemill.protocol.broker_messages import encode
from tidemill.runtime.system import SystemClock
from tidemill.worker.config import WorkerConfig
from tidemill.worker.crew import Crew
from tidemill.worker.executor import Call
from tidemill.worker.hand import KEPT_SECONDS, Hand
from tidemill.worker.taker import Taker

KEY = pool_key("default", ["default"], {})


def a_command(position: int, *, alone: bool = False, hops: int = 0) -> Message:
    value = encode(command_of(an_assignment(position), "default", alone), 0)
    return Message(value=value, headers={"hops": str(hops)} if hops else {})


class Stage:
    """A taker, its crew and its broker."""

    def __init__(self, slots: int) -> None:
        self.broker = MemoryBroker()
        self.gate = asyncio.Event()
        self.hand = Hand(2.0)
        executors = {"do": Doing(self._do)}
        self.crew = Crew(WorkerConfig(name="w", slots=slots), executors, SystemClock())
        self.taker = Taker(self.crew, self.hand, self.broker, SystemClock(), KEY)
        self.passed: list[int] = []

    async def send(self, *messages: Message) -> None:
        await self.broker.send(KEY.topic, messages)

    def begin_all(self) -> None:
        """As if all that is in hand were bound."""
        for token in self.hand.tokens:
            command = self.hand.take(token)
            assert command is not None
            self.taker.begin(command)

    async def until_in_hand(self, number: int) -> None:
        async with asyncio.timeout(5):
            while len(self.hand) < number:
                await self.crew.changed.wait()
                self.crew.changed.clear()

    async def _do(self, _: Call) -> None:
        await self.gate.wait()


@asynccontextmanager
async def a_stage(slots: int) -> AsyncIterator[Stage]:
    stage = Stage(slots)
    stage.taker.open()
    taking = asyncio.create_task(stage.taker.run())
    try:
        yield stage
    finally:
        stage.gate.set()
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)


async def test_a_full_worker_passes_commands_on_with_a_count_of_their_hops() -> None:
    async with a_stage(slots=1) as stage:
        await stage.send(a_command(0))
        await stage.until_in_hand(1)
        async with stage.broker.follow(KEY.topic) as passed:
            await stage.send(a_command(1))
            await anext(passed)
            again = await asyncio.wait_for(anext(passed), 5)

    assert (again.value, again.headers["hops"]) == (a_command(1).value, "1")


async def test_a_command_that_was_passed_on_is_kept_when_a_slot_gets_free() -> None:
    async with a_stage(slots=1) as stage:
        await stage.send(a_command(0))
        await stage.until_in_hand(1)
        await stage.send(a_command(1, hops=6))
        stage.hand.drop(stage.hand.tokens)
        stage.taker.look()
        await stage.until_in_hand(1)

        assert [token.position for token in stage.hand.tokens] == [1]


async def test_while_a_suspect_is_in_hand_or_runs_nothing_else_is_wanted() -> None:
    async with a_stage(slots=4) as stage:
        await stage.send(a_command(0, alone=True))
        await stage.until_in_hand(1)
        in_hand = stage.taker.wanted
        stage.begin_all()
        running = stage.taker.wanted
        stage.gate.set()
        await stage.crew.idle.wait()
        stage.taker.look()

        assert (in_hand, running, stage.taker.wanted) == (0, 0, 4)


async def test_a_suspect_looks_for_an_idle_worker_before_a_busy_one_keeps_it() -> None:
    async with a_stage(slots=4) as stage:
        await stage.send(a_command(0))
        await stage.until_in_hand(1)
        async with stage.broker.follow(KEY.topic) as passed:
            await stage.send(a_command(1, alone=True, hops=3))
            hops = [(await asyncio.wait_for(anext(passed), 5)).headers["hops"] for _ in range(3)]
            await stage.until_in_hand(2)

    assert hops == ["3", "4", "5"]


def test_started_is_said_again_until_it_is_answered() -> None:
    hand = Hand(started_seconds=2.0)
    hand.put(an_assignment(0), alone=False, now=10.0)

    said = [bool(hand.to_say(now, running=3)) for now in (10.0, 11.0, 12.0, 13.0, 14.0)]

    assert said == [True, False, True, False, True]
    assert hand.next_at(running=3) == 16.0


def test_a_suspect_says_started_once_nothing_else_runs_or_is_in_hand() -> None:
    hand = Hand(started_seconds=2.0)
    other, suspect = an_assignment(0), an_assignment(1)
    hand.put(other, alone=False, now=10.0)
    hand.put(suspect, alone=True, now=10.0)

    beside = hand.to_say(10.0, running=0)
    hand.take(other.token)
    busy = hand.to_say(20.0, running=1)
    idle = hand.to_say(20.0, running=0)

    assert (beside, busy, idle) == ([other.token], [], [suspect.token])


def test_a_suspect_that_cannot_begin_is_let_go_before_its_grant_goes_back() -> None:
    hand = Hand(started_seconds=2.0)
    hand.put(an_assignment(0), alone=True, now=10.0)

    due = hand.next_at(running=1)
    hand.drop_old(10.0 + KEPT_SECONDS, running=1)

    assert due == 10.0 + KEPT_SECONDS
    assert len(hand) == 0
    assert hand.next_at(running=1) is None


async def test_a_command_that_cannot_be_passed_on_does_not_cost_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(topic: str, messages: Sequence[Message]) -> None:
        raise Unavailable("the broker is down")

    async with a_stage(slots=4) as stage:
        await stage.send(a_command(0))
        await stage.until_in_hand(1)
        await stage.send(a_command(1, alone=True), a_command(2))
        monkeypatch.setattr(stage.broker, "send", refuse)
        await stage.until_in_hand(2)

        assert [token.position for token in stage.hand.tokens] == [0, 2]
