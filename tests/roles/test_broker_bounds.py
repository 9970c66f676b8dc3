"""What schedulers and workers keep in mind of a broker, and for how long they try."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.contract.conftest import ManualClock
from tests.roles.broker_mill import BrokerMill, kind_of, on_a_broker_mill
from tests.roles.mill import a_step
from tests.roles.test_broker_pools import a_worker
from tests.roles.worker_stage import an_assignment
from tidemill.buses.memory import MemoryBroker
from tidemill.domain.errors import InvalidInput, Problem, Unavailable
from tidemill.domain.identifiers import RunId, SessionId, Token
from tidemill.domain.pools import pool_key
from tidemill.gateway.broker_gateway import BrokerGateway
from tidemill.ports.broker import DEAD_LETTERS, Message
from tidemill.protocol.broker_codec import command_of
from tidemill.protocol.broker_door import Letter
from tidemill.protocol.broker_messages import decode_answer
from tidemill.protocol.unreadable import Sorter
from tidemill.scheduler import letters as letters_module
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.keeper import PRUNE_SECONDS
from tidemill.scheduler.letters import Letters
from tidemill.scheduler.pools import POOL_LIFE, BrokerSession, Pool, Pools

KEY = pool_key("default", ("default",), {})


def some_pools(clock: ManualClock, *workers: BrokerSession) -> Pools:
    """Pools that know these workers, whose sessions are open."""
    pools = Pools("s1", clock, SchedulerConfig())
    for worker in workers:
        worker.opened = True
        worker.heard_at = clock.monotonic()
        pools.add(worker)
    return pools


async def test_grants_that_were_never_sent_do_not_fill_a_pool_for_ever() -> None:
    clock = ManualClock()
    pool = Pool(KEY, Letters("s1", 10), clock, start_seconds=15.0)
    worker = a_worker("w")
    pool.members[worker.id] = worker
    for position in range(worker.slots):
        pool.grant(Token(RunId("r"), position, 1), clock.monotonic())

    await clock.sleep(16)
    pool.guess(1.0)

    assert pool.free == worker.slots


async def test_a_pool_without_workers_is_forgotten() -> None:
    one, other = a_worker("one"), a_worker("other")
    pools = some_pools(ManualClock(), one, other)

    pools.remove(one)
    kept = len(pools.all())
    pools.remove(other)
    pools.remove(other)

    assert (kept, pools.all()) == (1, [])


async def test_who_was_forgotten_while_its_row_was_written_is_not_counted_on() -> None:
    worker, other = a_worker("w"), a_worker("other")
    pools = some_pools(ManualClock(), worker, other)

    pools.remove(worker)
    pools.heard(worker)

    assert [list(pool.members) for pool in pools.all()] == [[other.id]]


async def test_nobody_counts_on_a_silent_worker_though_it_is_too_early_to_bury_it() -> None:
    clock = ManualClock()
    pools = some_pools(clock, a_worker("w"))
    pools.path.reached()

    await clock.sleep(3.5)
    pools.path.missed()
    pools.path.reached()
    renewed = pools.to_renew()

    assert [one.worker for one in renewed] == ["w"]
    assert [list(pool.members) for pool in pools.all()] == [[]]


class HalfDown(MemoryBroker):
    """A broker that does not take one topic, and lets its senders wait first."""

    def __init__(self, error: Exception, wait: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self.tried: list[str] = []
        self.up = asyncio.Event()
        self._error = error
        self._wait = wait

    async def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Say no to the topic `down`."""
        self.tried.append(topic)
        if topic == "down":
            await self._wait()
            raise self._error
        self.up.set()


def a_letter(topic: str) -> Letter:
    return Letter(topic, None, command_of(an_assignment(0), "default", alone=False))


class Door:
    """Has two commands to send, one after the other, then none."""

    name = "s1"

    def __init__(self) -> None:
        self._left = [a_letter("up"), a_letter("down")]

    async def letters(self) -> list[Letter]:
        """The next one."""
        if not self._left:
            await asyncio.Event().wait()
        return [self._left.pop()]


def a_gateway(broker: HalfDown, clock: ManualClock) -> BrokerGateway:
    return BrokerGateway(Door(), broker, clock)  # type: ignore[arg-type]


async def test_a_command_is_tried_for_less_than_the_start_bound_however_slow_the_broker() -> None:
    clock = ManualClock()
    began = clock.monotonic()
    broker = HalfDown(Unavailable("down"), lambda: clock.sleep(5.0))

    await a_gateway(broker, clock)._send("down", [a_letter("down")])

    assert len(broker.tried) == 2
    assert clock.monotonic() - began < SchedulerConfig().broker_start_bound_seconds


async def test_a_command_that_is_refused_is_not_tried_again() -> None:
    refusal = InvalidInput([Problem(path="kafka.prefix", message="refused", code="topic")])
    broker = HalfDown(refusal, lambda: asyncio.sleep(0))

    await a_gateway(broker, ManualClock())._send("down", [a_letter("down")])

    assert broker.tried == ["down"]


async def test_a_topic_that_takes_nothing_holds_no_other_up() -> None:
    broker = HalfDown(Unavailable("down"), asyncio.Event().wait)

    sending = asyncio.create_task(a_gateway(broker, ManualClock())._send_letters())
    async with asyncio.timeout(5):
        await broker.up.wait()
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)

    assert broker.tried == ["down", "up"]


async def test_a_message_too_large_for_the_dead_letters_ends_nobody() -> None:
    class Full(MemoryBroker):
        async def send(self, topic: str, messages: Sequence[Message]) -> None:
            assert topic == DEAD_LETTERS
            raise InvalidInput([Problem(path="message", message="too large", code="size")])

    read = await Sorter(Full()).read("answers", [Message(value=b"{")], decode_answer)

    assert read == []


@on_a_broker_mill
async def test_an_outcome_is_not_said_again_before_its_time(stage: BrokerMill) -> None:
    stage.gate.clear()
    stage.hire()
    await stage.mill.start(a_step("t"))
    await stage.begun(1)
    stage.broker.copies = lambda topic, _: 0 if topic == "answers" else 1
    await stage.mill.clock.sleep(2.5 - stage.mill.clock.monotonic() % 3.0 + 3.0)

    stage.gate.set()
    await stage.mill.clock.sleep(2.9)
    first = stage.broker.on("reports")
    await stage.mill.clock.sleep(0.5)
    second = stage.broker.on("reports")

    assert [len([one for one in said if "result" in one]) for said in (first, second)] == [1, 2]


@on_a_broker_mill
async def test_the_row_of_a_pool_lives_while_it_is_served_and_not_for_ever(
    stage: BrokerMill,
) -> None:
    hired = stage.hire()
    await stage.mill.clock.sleep(2 * PRUNE_SECONDS)

    async with stage.mill.store.transaction() as tx:
        row = await tx.sessions.get(KEY.id)
        left = row.expires_at - await tx.now() if row is not None else 0
    hired.kill()

    assert POOL_LIFE - 300_000_000 <= left <= POOL_LIFE


async def test_answers_that_cannot_be_sent_take_bounded_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(letters_module, "DRAFTS_MAX", 3)
    letters = Letters("s1", 10)

    for number in range(5):
        letters.draft(SessionId(f"broker-{number}"), "default").welcome = True
    sent = await letters.take()

    assert [letter.key for letter in sent] == ["broker-2", "broker-3", "broker-4"]


@on_a_broker_mill
async def test_a_scheduler_that_leaves_sends_its_last_letters_first(stage: BrokerMill) -> None:
    scheduler = stage.mill.a_scheduler("leaving")
    before = scheduler.owes_answers

    scheduler.desk.pools.letters.put(a_letter("tasks.default.default"))

    assert (before, scheduler.owes_answers) == (False, True)


@pytest.mark.parametrize("kind", ["task.started", "task.completed", "worker.goodbye"])
def test_what_is_said_again_is_not_sent_where_nobody_reads(kind: str) -> None:
    async def run(stage: BrokerMill) -> None:
        lost: set[str] = set()

        def is_lost(message: Message) -> bool:
            if message.key is not None and kind_of(message) == kind:
                lost.add(message.key)
            return message.key in lost and kind_of(message) == kind

        stage.broker.loses = is_lost
        hired = stage.hire()
        run_id = await stage.mill.start(a_step("t"))
        await stage.mill.ended(run_id, 6)
        await hired.worker.drain(1.0)
        await stage.mill.clock.sleep(2)

        async with stage.mill.store.transaction() as tx:
            session = await tx.sessions.get(SessionId(hired.session))
        assert session is not None
        assert session.closed_at is not None
        assert len(lost) == 1

    on_a_broker_mill(run)()
