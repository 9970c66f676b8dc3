"""What can happen to schedulers themselves, each fault by its number in docs/reliability.md."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.roles.mill import Mill, a_chain, a_step, on_a_mill, on_a_mill_at_rest
from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Lost, Succeeded
from tidemill.domain.facts import decode_facts
from tidemill.domain.identifiers import SessionId
from tidemill.domain.run import RunState
from tidemill.ports.bus import Hint
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.service import Scheduler
from tidemill.stores.sqlite.statements import WriteStatements

LOOK_SECONDS = 2.0
BACK_SECONDS = 1.5


@contextmanager
def working(scheduler: Scheduler) -> Iterator[None]:
    """A scheduler at work, and killed at the end of the block."""
    duties = asyncio.create_task(scheduler.run())
    try:
        yield
    finally:
        duties.cancel()


async def facts_of(mill: Mill) -> list[str]:
    """The types of all facts told so far."""
    async with mill.store.transaction() as tx:
        await tx.outbox.stamp(10_000)
        rows = await tx.outbox.read(0, 10_000)
    return [fact.type.value for row in rows for fact in decode_facts(row.facts)]


@on_a_mill
async def test_fault_14_what_was_committed_and_not_published_is_found_within_two_sweeps(
    mill: Mill,
) -> None:
    worker = mill.worker()
    await worker.open()

    async def lose(_hint: Hint) -> None:
        """As when the process dies right after its commit."""

    mill.bus.send_hint = lose  # type: ignore[method-assign, assignment]
    await mill.start(a_step("a"))

    assert await worker.assignment(seconds_max=2 * LOOK_SECONDS)


@on_a_mill_at_rest
async def test_fault_14_a_grant_whose_scheduler_died_before_sending_it_runs_unspent(
    mill: Mill,
) -> None:
    run_id = await mill.start(a_step("a"))

    async def die(*_: object) -> None:
        """As when the process dies right after its commit: nothing of it reaches the worker."""
        await asyncio.Event().wait()

    mill.scheduler._turns._dispatch.hand_over = die  # type: ignore[method-assign, assignment]
    first = mill.worker()
    with working(mill.scheduler):
        welcome = await first.open()
        while await mill.states(run_id) != ["RUNNING"]:
            await mill.clock.sleep(0.1)
    second = mill.a_scheduler("second")
    with working(second):
        again = mill.worker(second, session=welcome.session, secret=welcome.secret)
        await again.open()
        assignment = await again.assignment(seconds_max=2 * LOOK_SECONDS)
        await again.succeed(assignment.token)
        await mill.ended(run_id)

    assert (await mill.task(run_id)).losses == 0
    assert assignment.token.epoch == 2


@on_a_mill
async def test_fault_15_nothing_leaves_before_its_commit(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    await mill.start(a_step("a"))
    hints: list[Hint] = []
    plain = WriteStatements.commit

    async def refuse(_: WriteStatements) -> None:
        raise Unavailable("on purpose")

    async def hear(hint: Hint) -> None:
        hints.append(hint)

    mill.bus.send_hint = hear  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WriteStatements, "commit", refuse)
        assert await worker.nothing_comes(3)
        assert hints == []
        patch.setattr(WriteStatements, "commit", plain)
        assert await worker.assignment()


@on_a_mill
async def test_fault_16_two_schedulers_with_the_same_report_make_one_set_of_transitions(
    mill: Mill,
) -> None:
    second = mill.a_scheduler("second")
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(*a_chain(1))
    token = (await worker.assignment()).token

    with working(second):
        for scheduler in (mill.scheduler, second, mill.scheduler):
            report = TaskItem(token=token, event=Succeeded(token.epoch, b"1"))
            scheduler.desk.inbox.put_own([report])
        await mill.ended(run_id)
        await mill.clock.sleep(5)

    facts = await facts_of(mill)
    assert facts.count("task.completed") == facts.count("workflow.completed") == 1


@on_a_mill
async def test_fault_18_a_completion_stands_against_a_rescue_that_saw_it_running(
    mill: Mill,
) -> None:
    worker = mill.worker()
    welcome = await worker.open()
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token
    seen_running = TaskItem(token=token, event=Lost(token.epoch, SessionId(welcome.session)))
    await worker.succeed(token)

    mill.scheduler.desk.inbox.put_own([seen_running])
    await mill.clock.sleep(5)

    task = await mill.task(run_id)
    assert (task.state.value, task.epoch, task.losses) == ("SUCCEEDED", 1, 0)
    assert (await mill.run(run_id)).state is RunState.SUCCEEDED


DUTIES = ("_keeper.prune", "_keeper.compare", "_timers.watch_unsettled", "_timers.watch_due")


@pytest.mark.parametrize("duty", DUTIES)
def test_fault_19_a_duty_that_fails_at_its_start_begins_anew_and_no_other_ends(duty: str) -> None:
    @on_a_mill_at_rest
    async def run(mill: Mill) -> None:
        owner = getattr(mill.scheduler, duty.partition(".")[0])
        name = duty.partition(".")[2]
        real, starts = getattr(owner, name), list[float]()

        async def fail_first() -> None:
            starts.append(mill.clock.monotonic())
            if len(starts) <= 2:
                raise RuntimeError("on purpose")
            await real()

        setattr(owner, name, fail_first)
        with working(mill.scheduler):
            worker = mill.worker()
            await worker.open()
            run_id = await mill.start(a_step("a"))
            await worker.succeed((await worker.assignment()).token)
            await mill.ended(run_id)
            await mill.clock.sleep(5)

        assert len(starts) == 3
        assert starts[1] - starts[0] >= mill.config.retry_seconds_max

    run()


@on_a_mill_at_rest
async def test_fault_23_after_ten_minutes_without_any_scheduler_everything_goes_on(
    mill: Mill,
) -> None:
    run_id = await mill.start(*a_chain(3))
    with working(mill.scheduler):
        worker = mill.worker()
        welcome = await worker.open()
        await worker.succeed((await worker.assignment()).token)
        held = (await worker.assignment()).token
    await mill.clock.sleep(600)

    later = mill.a_scheduler("later")
    with working(later):
        back = mill.worker(later, session=welcome.session, secret=welcome.secret, held=(held,))
        await back.open()
        await back.succeed(held)
        await back.succeed((await back.assignment()).token)
        run = await mill.ended(run_id)

    assert run.state is RunState.SUCCEEDED
    assert [task.losses for task in await mill.store.reader.tasks("default", run_id, -1, 10)] == [
        0,
        0,
        0,
    ]


@on_a_mill
async def test_after_an_outage_longer_than_a_session_lives_work_goes_on_soon(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    plain = mill.store.take_turn

    async def refuse() -> None:
        raise Unavailable("on purpose")

    for tenth in range(20):  # whenever in the course of its duties the store comes back
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mill.store, "take_turn", refuse)
            await mill.clock.sleep(10 + tenth / 10)
            patch.setattr(mill.store, "take_turn", plain)
            await mill.start(a_step("a"))
            assignment = await worker.assignment(seconds_max=BACK_SECONDS)
        await worker.succeed(assignment.token)
