"""Ways in which a scheduler could come to a stop, or take from one what it owes another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import asyncpg
import pytest

from tests.roles.mill import Mill, Stream, a_chain, a_step, on_a_mill
from tidemill.buses.memory import MemoryBus
from tidemill.domain.events import Failed, Released, Succeeded
from tidemill.domain.identifiers import RunId
from tidemill.domain.task_run import TaskError
from tidemill.domain.workflow import RetryPolicy, Source, Workflow
from tidemill.engine import runs
from tidemill.engine.plans import Plans
from tidemill.protocol.messages import (
    Assignments,
    Hello,
    Holdings,
    Outcome,
    Outcomes,
    WorkerMessage,
)
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.scheduler.admission import RESERVED_SECONDS
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.pacing import REST_SECONDS_MAX, Pace
from tidemill.scheduler.service import Scheduler
from tidemill.stores.postgres.store import PostgresStore

SUSPECT_AT_ONCE = RetryPolicy(max_losses=1)


async def a_suspect(mill: Mill) -> RunId:
    """A run of one task that has lost a session and must run alone from now on."""
    killed = mill.worker(slots=1)
    await killed.open()
    run_id = await mill.start(a_step("suspect", retry=SUSPECT_AT_ONCE, queue="default"))
    await killed.assignment()
    killed.hang_up()
    return run_id


@on_a_mill
async def test_assignments_are_cut_into_messages_that_the_wire_takes(mill: Mill) -> None:
    worker = mill.worker(slots=64)
    await worker.open()
    children = [a_step(f"c{n}", inputs={"x": Source(result="a")}) for n in range(40)]
    await mill.start(a_step("a"), *children)
    await worker.succeed((await worker.assignment()).token, result="x" * 250_000)

    sizes: list[int] = []
    while sum(sizes) < 40:
        sizes.append(len((await worker.receive(Assignments)).assignments))

    assert max(sizes) * 250_000 <= 4 * 1024 * 1024


@on_a_mill
async def test_a_reserved_worker_is_freed_when_its_suspect_is_gone(mill: Mill) -> None:
    worker = mill.worker(slots=2)
    suspect = await a_suspect(mill)
    await worker.open()
    await mill.start(a_step("long", priority=1))
    long = (await worker.assignment()).token
    await mill.clock.sleep(12)
    await mill.start(a_step("normal"))

    await runs.cancel(mill.store, mill.bus, "default", suspect)
    await worker.succeed(long)

    assert (await worker.assignment(5)).task in {"normal", "suspect"}


@on_a_mill
async def test_a_suspect_holds_the_only_worker_up_for_a_bounded_time(mill: Mill) -> None:
    worker = mill.worker(slots=64)
    await a_suspect(mill)
    await worker.open()
    await mill.start(a_step("long"))
    await worker.assignment()
    await mill.clock.sleep(10)

    await mill.start(a_step("other", priority=1))

    assert (await worker.assignment(RESERVED_SECONDS + 5)).task == "other"


@on_a_mill
async def test_a_stream_that_ends_at_its_welcome_leaves_no_session_behind(mill: Mill) -> None:
    async def hello() -> AsyncIterator[WorkerMessage]:
        yield Hello(worker="w", slots=1)
        await asyncio.sleep(1_000)

    stream: Any = mill.scheduler.attach(hello())
    async with aclosing(stream):
        await anext(stream)

    assert len(mill.scheduler.desk.sessions) == 0


@on_a_mill
async def test_a_lost_welcome_costs_nothing(mill: Mill) -> None:
    worker = mill.worker()
    welcome = await worker.open()
    run_id = await mill.start(a_step("a"), a_step("b"))
    held = tuple(one.token for one in await worker.assignments(2))
    worker.hang_up()

    def again() -> Stream:
        return mill.worker(session=welcome.session, secret=welcome.secret, held=held)

    unheard = again()
    await unheard.open()
    unheard.hang_up()

    back = again()

    assert (await back.open()).keep == held
    await back.succeed(*held)
    await mill.ended(run_id)
    assert (await mill.task(run_id)).losses == 0


@on_a_mill
async def test_a_session_that_the_store_calls_closed_gets_no_grants(mill: Mill) -> None:
    worker = mill.worker()
    welcome = await worker.open()
    async with mill.store.transaction() as tx:
        await tx.sessions.close([welcome.session])

    run_id = await mill.start(a_step("a"))
    await worker.over.wait()

    assert await mill.states(run_id) == ["READY"]


@on_a_mill
async def test_holdings_older_than_a_grant_say_nothing_about_it(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    worker.send(Holdings(held=(), slots=10))
    await mill.clock.sleep(0.1)
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token

    await mill.clock.sleep(60)

    assert (await mill.task(run_id)).epoch == token.epoch
    assert (await worker.succeed(token)).stale == ()


@on_a_mill
async def test_one_unreadable_run_does_not_keep_a_worker_out(mill: Mill) -> None:
    worker = mill.worker()
    welcome = await worker.open()
    bad, good = await mill.start(a_step("bad")), await mill.start(a_step("good"))
    tokens = {one.task: one.token for one in await worker.assignments(2)}
    mill.store._writer.raw.execute("UPDATE run SET labels = 'not json' WHERE id = ?1", (bad,))
    worker.hang_up()

    back = mill.worker(session=welcome.session, secret=welcome.secret, held=tuple(tokens.values()))

    assert (await back.open()).keep == (tokens["good"],)
    assert (await mill.task(good)).losses == 0


@on_a_mill
async def test_a_ready_row_of_no_node_quarantines_its_run_alone(mill: Mill) -> None:
    bad = await mill.start(a_step("bad"))
    good = [await mill.start(a_step("good")) for _ in range(5)]
    mill.store._writer.raw.execute("UPDATE task SET node = 999 WHERE run_id = ?1", (bad,))
    worker = mill.worker()
    await worker.open()

    granted = {one.token.run_id for one in await worker.assignments(5, seconds_max=5)}

    assert granted == set(good)
    assert "no node" in str((await mill.run(bad)).quarantine)


@on_a_mill
async def test_a_worker_has_no_say_in_another_namespace(mill: Mill) -> None:
    worker, stranger = mill.worker(), mill.worker(namespace="elsewhere")
    await worker.open()
    await stranger.open()
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token

    acks = await stranger.succeed(token, result="forged")

    assert acks.stale == (token,)
    assert await mill.states(run_id) == ["RUNNING"]


@on_a_mill
async def test_a_worker_that_comes_back_has_no_say_in_another_namespace(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token

    outcome = Outcome(token, Succeeded(token.epoch))
    await mill.worker(namespace="elsewhere", finished=(outcome,)).open()

    assert await mill.states(run_id) == ["RUNNING"]


@on_a_mill
async def test_thousands_of_timers_that_run_out_together_all_fire_in_time(mill: Mill) -> None:
    worker = mill.worker(slots=8_000)
    await worker.open()
    policy = RetryPolicy(base_seconds=5, jitter=0)
    await mill.start(*(a_step(f"t{n}", retry=policy) for n in range(6_000)))
    tokens = [one.token for one in await worker.assignments(6_000)]
    error = TaskError(type="Boom", message="it broke")
    await worker.report(*((token, Failed(epoch=token.epoch, error=error)) for token in tokens))
    failed_at = mill.clock.monotonic()

    await worker.assignments(6_000)

    assert mill.clock.monotonic() - failed_at < 5 + 2


@on_a_mill
async def test_a_task_that_is_handed_back_goes_before_those_that_came_later(mill: Mill) -> None:
    worker = mill.worker(slots=1)
    await worker.open()
    for task in "abc":
        await mill.start(a_step(task))
    token = (await worker.assignment()).token

    await worker.report((token, Released(token.epoch)))

    order = []
    for _ in "bac":
        order.append(await worker.assignment())
        await worker.succeed(order[-1].token)
    assert [one.task for one in order] == ["b", "a", "c"]  # the slot went to who waited already


@on_a_mill
async def test_queues_of_equal_priority_take_turns(mill: Mill) -> None:
    for name in ("a", "b"):
        await mill.start(*(a_step(f"{name}{n}", queue=name) for n in range(20)))
    worker = mill.worker(slots=1, queues=("a", "b"))
    await worker.open()

    order = []
    for _ in range(10):
        assignment = await worker.assignment()
        order.append(assignment.task[0])
        await worker.succeed(assignment.token)

    assert {order.count("a"), order.count("b")} == {5}


def test_whoever_looks_for_long_rests_for_long() -> None:
    assert _rest(0.001, 0.001) == 1.0
    assert _rest(0.05, 0.06) == 2.5
    assert _rest(60.0, 60.0) == REST_SECONDS_MAX


def test_a_single_slow_look_says_nothing() -> None:
    assert _rest(0.001, 60.0) == 1.0


def _rest(*took: float) -> float:
    pace = Pace(1.0)
    return [pace.rest_after(seconds) for seconds in took][-1]


@on_a_mill
async def test_plans_that_exceed_the_bound_together_are_kept_while_they_are_needed(
    mill: Mill,
) -> None:
    started = [await mill.start(*a_chain(n)) for n in (5, 6, 7)]
    plans = Plans(nodes_max=4)
    needed = [await mill.run(run_id) for run_id in started]

    for run in needed:
        await plans.load(mill.store.payloads, [run.version_id])
        plans.of([run])

    assert len(plans.of(needed)[0]) == 3


@pytest.fixture
async def postgres(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    """A store in a schema of its own."""
    store = PostgresStore(postgres_dsn, schema="hardening")
    await store.migrate()
    yield store
    await store.close()


async def test_a_run_that_somebody_else_holds_holds_no_other_run_up(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    bus, entropy = MemoryBus(), SystemEntropy()
    scheduler = Scheduler(
        name="s",
        store=postgres,
        bus=bus,
        clock=SystemClock(),
        entropy=entropy,
        config=SchedulerConfig(),
    )
    duties = asyncio.create_task(scheduler.run())
    worker = Stream(scheduler, Hello(worker="w", slots=10))
    await worker.open()
    request = runs.StartRequest(workflow=Workflow(name="w", tasks=tuple(a_chain(2))))
    (held,) = await runs.start(postgres, bus, entropy, [request])
    token = (await worker.assignment()).token
    foreign = await asyncpg.connect(postgres_dsn, server_settings={"search_path": "hardening"})
    transaction = foreign.transaction()
    await transaction.start()
    await foreign.execute("SELECT 1 FROM run WHERE id = $1 FOR UPDATE", held.run_id)
    worker.send(Outcomes((Outcome(token, Succeeded(token.epoch)),)))
    await asyncio.sleep(0.3)

    (other,) = await runs.start(postgres, bus, entropy, [request])
    for _ in range(2):
        assignment = await worker.assignment(5)
        assert assignment.token.run_id == other.run_id
        await worker.succeed(assignment.token)
    await transaction.rollback()

    assert (await worker.assignment(5)).token.run_id == held.run_id
    duties.cancel()
    await asyncio.gather(duties, return_exceptions=True)
    await foreign.close()


@on_a_mill
async def test_a_task_whose_session_was_deleted_by_hand_runs_elsewhere(mill: Mill) -> None:
    first, other = mill.worker(slots=1), mill.worker()
    welcome = await first.open()
    await mill.start(a_step("a"))
    lost = await first.assignment()
    await other.open()

    mill.store._writer.raw.execute("DELETE FROM session WHERE id = ?", [welcome.session])
    mill.scheduler._keeper._orphans_at = 0.0

    again = await other.assignment()
    assert again.token == lost.token._replace(epoch=lost.token.epoch + 1)
