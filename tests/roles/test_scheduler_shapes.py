"""Large and broken runs: what they cost the others."""

from __future__ import annotations

from tests.roles.mill import Mill, Stream, a_chain, a_step, on_a_mill, on_a_mill_of_small_turns
from tidemill.domain.facts import Fact, decode_facts
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RUN_ENDED
from tidemill.domain.workflow import RetryPolicy
from tidemill.engine import runs
from tidemill.ports.store import Transaction

SIZE = 10_000
NO_RETRY = RetryPolicy(max_retries=0)


async def _small_run_overtakes(mill: Mill, worker: Stream, large: RunId) -> bool:
    """Start a run of one task now and see it through; True when it ends before the large one."""
    small = await mill.start(a_step("small", priority=1))
    while (assignment := await worker.assignment()).token.run_id != small:
        pass
    await worker.succeed(assignment.token)
    await mill.ended(small)
    await mill.ended(large)
    async with mill.store.transaction() as tx:
        await tx.outbox.stamp(100_000)
        rows = await tx.outbox.read(0, 100_000)
    endings = [fact.run_id for row in rows for fact in decode_facts(row.facts) if _is_ending(fact)]
    return endings.index(small) < endings.index(large)


def _is_ending(fact: Fact) -> bool:
    return fact.position is None and fact.state in RUN_ENDED


@on_a_mill
async def test_a_large_run_is_written_in_chunks_and_then_begins(mill: Mill) -> None:
    run_id = await mill.start(*(a_step(f"t{n}") for n in range(SIZE)))

    assert (await mill.run(run_id)).state == "PENDING"
    await mill.clock.sleep(3)

    run = await mill.run(run_id)
    assert (run.state, run.next_position, run.told) == ("RUNNING", SIZE, None)
    assert set(await mill.states(run_id)) == {"READY"}


@on_a_mill_of_small_turns
async def test_the_first_of_a_long_chain_failing_holds_no_other_run_up(mill: Mill) -> None:
    worker = mill.worker(slots=5)
    await worker.open()
    run_id = await mill.start(a_step("t0", retry=NO_RETRY), *a_chain(SIZE)[1:])
    token = (await worker.assignment()).token
    await worker.fail(token)

    assert await _small_run_overtakes(mill, worker, run_id)

    assert (await mill.run(run_id)).state == "FAILED"
    assert (await mill.states(run_id)).count("UPSTREAM_FAILED") == SIZE - 1


@on_a_mill_of_small_turns
async def test_a_wide_fan_out_cancelled_holds_no_other_run_up(mill: Mill) -> None:
    worker = mill.worker(slots=5)
    await worker.open()
    run_id = await mill.start(a_step("root"), *(a_step(f"t{n}", "root") for n in range(SIZE)))
    await worker.succeed((await worker.assignment()).token)
    held = await worker.assignments(5)

    await runs.cancel(mill.store, mill.bus, "default", run_id)
    assert sorted(await worker.confirm_cancel()) == sorted(one.token for one in held)
    assert await _small_run_overtakes(mill, worker, run_id)

    run = await mill.run(run_id)
    assert (run.state, run.open) == ("CANCELLED", 0)


@on_a_mill
async def test_a_fan_in_from_ten_thousand_counts_exactly(mill: Mill) -> None:
    worker = mill.worker(slots=2_000)
    await worker.open()
    names = [f"t{n}" for n in range(SIZE)]
    run_id = await mill.start(*map(a_step, names), a_step("last", *names))

    for _ in range(SIZE // 2_000):
        await worker.succeed(*(one.token for one in await worker.assignments(2_000)))

    last = await worker.assignment()
    assert last.task == "last"
    await worker.succeed(last.token)
    assert (await mill.ended(run_id)).state == "SUCCEEDED"


async def _damage(mill: Mill, run_id: RunId) -> None:
    version = (await mill.run(run_id)).version_id
    connection = mill.store._writer.raw
    connection.execute("UPDATE workflow_version SET spec = ?1 WHERE id = ?2", (b"{", version))


@on_a_mill
async def test_fault_20_a_run_whose_definition_cannot_be_read_is_quarantined_and_others_go_on(
    mill: Mill,
) -> None:
    broken = await mill.start(a_step("broken"))
    await _damage(mill, broken)
    healthy = await mill.start(a_step("healthy"))
    worker = mill.worker()
    await worker.open()

    await worker.succeed((await worker.assignment()).token)

    assert (await mill.ended(healthy)).state == "SUCCEEDED"
    reason = (await mill.run(broken)).quarantine
    assert reason is not None
    assert "its definition cannot be read" in reason


@on_a_mill
async def test_fault_20_a_row_that_cannot_be_written_quarantines_one_run(mill: Mill) -> None:
    healthy, poison = await mill.start(*a_chain(2)), await mill.start(*a_chain(2))
    worker = mill.worker()
    await worker.open()
    tokens = [one.token for one in await worker.assignments(2)]
    connection = mill.store._writer.raw
    connection.execute(
        "CREATE TEMP TRIGGER poison BEFORE UPDATE ON main.task WHEN NEW.run_id = '"
        + poison
        + "' AND NEW.state = 'SUCCEEDED' BEGIN SELECT RAISE(ABORT, 'poisoned'); END"
    )

    await worker.succeed(*tokens)
    await worker.succeed((await worker.assignment()).token)

    assert (await mill.ended(healthy)).state == "SUCCEEDED"
    assert "poisoned" in str((await mill.run(poison)).quarantine)


@on_a_mill
async def test_a_ready_row_that_cannot_be_granted_quarantines_one_run(mill: Mill) -> None:
    started = [await mill.start(a_step("a")) for _ in range(5)]
    connection = mill.store._writer.raw
    connection.execute(
        "CREATE TEMP TRIGGER poison BEFORE UPDATE ON main.task WHEN NEW.run_id = '"
        + started[2]
        + "' AND NEW.state = 'RUNNING' BEGIN SELECT RAISE(ABORT, 'poisoned'); END"
    )
    worker = mill.worker()
    await worker.open()

    granted = {one.token.run_id for one in await worker.assignments(4)}

    assert granted == {*started} - {started[2]}
    await mill.clock.sleep(2)
    assert "poisoned" in str((await mill.run(started[2])).quarantine)


@on_a_mill
async def test_a_run_released_from_quarantine_goes_on(mill: Mill) -> None:
    run_id = await mill.start(a_step("a"))
    async with mill.store.transaction() as tx:
        await _quarantine(tx, run_id)
    worker = mill.worker()
    await worker.open()
    assert await worker.nothing_comes(5)

    async with mill.store.transaction() as tx:
        assert await tx.runs.release(run_id)

    await worker.succeed((await worker.assignment()).token)
    assert (await mill.ended(run_id)).state == "SUCCEEDED"


async def _quarantine(tx: Transaction, run_id: RunId) -> None:
    await tx.runs.quarantine(run_id, "for a test")
