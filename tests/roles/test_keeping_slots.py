"""Runs that have begun keep their slots while others of equal standing wait."""

from __future__ import annotations

from collections import Counter

from tests.roles.mill import Mill, Stream, a_chain, a_step, on_a_mill
from tidemill.domain.identifiers import RunId
from tidemill.protocol.messages import Assignment


async def begun(mill: Mill, slots: int, *, width: int = 1) -> tuple[Stream, list[Assignment]]:
    """A worker whose slots all run the first task of a run, each with so many children."""
    worker = mill.worker(slots=slots)
    await worker.open()
    for _ in range(slots):
        children = [a_step(f"child{n}", "first") for n in range(width)]
        await mill.start(a_step("first"), *children)
    return worker, await worker.assignments(slots)


async def waiting(mill: Mill, count: int, priority: int = 0) -> list[RunId]:
    """Runs of one task that nobody has a slot for."""
    started = [await mill.start(a_step("other", priority=priority)) for _ in range(count)]
    await mill.clock.sleep(5)
    return started


async def runs_after(worker: Stream, ended: list[Assignment]) -> list[RunId]:
    """Whose tasks get the slots of these."""
    await worker.succeed(*(one.token for one in ended))
    return [one.token.run_id for one in await worker.assignments(len(ended))]


@on_a_mill
async def test_a_run_goes_on_before_others_begin(mill: Mill) -> None:
    worker, first = await begun(mill, slots=16)
    others = await waiting(mill, 40)

    granted = await runs_after(worker, first)

    assert sorted(run for run in granted if run in others) == others[:2]  # one slot of eight
    assert len({one.token.run_id for one in first} & set(granted)) == 14


@on_a_mill
async def test_a_run_keeps_no_more_slots_than_its_ended_tasks_held(mill: Mill) -> None:
    worker, first = await begun(mill, slots=16, width=5)
    others = await waiting(mill, 40)

    granted = Counter(await runs_after(worker, first))

    assert {granted[one.token.run_id] for one in first} <= {0, 1}
    assert sum(granted[other] for other in others) == 2


@on_a_mill
async def test_a_single_slot_goes_to_who_has_waited_for_longest(mill: Mill) -> None:
    worker, (first, *_) = await begun(mill, slots=16)
    others = await waiting(mill, 3)

    assert await runs_after(worker, [first]) == others[:1]


@on_a_mill
async def test_nobody_keeps_a_slot_before_a_higher_priority(mill: Mill) -> None:
    worker, first = await begun(mill, slots=16)
    urgent = await waiting(mill, 40, priority=1)

    assert sorted(await runs_after(worker, first)) == urgent[:16]


@on_a_mill
async def test_whoever_waits_gets_on_while_long_chains_keep_their_slots(mill: Mill) -> None:
    worker = mill.worker(slots=8)
    await worker.open()
    for _ in range(8):
        await mill.start(*a_chain(50))
    running = await worker.assignments(8)
    others = await waiting(mill, 5)

    for _ in range(5):
        await worker.succeed(*(one.token for one in running))
        running = await worker.assignments(8)

    for other in others[:4]:  # the last one has only just been granted
        assert (await mill.run(other)).state == "SUCCEEDED"


@on_a_mill
async def test_a_run_keeps_no_slot_of_another_worker(mill: Mill) -> None:
    small, large = mill.worker(slots=1, queues=("small",)), mill.worker(slots=32)
    await small.open()
    await large.open()
    for _ in range(16):
        await mill.start(a_step("first"), a_step("then", "first", queue="small"))
    first = await large.assignments(16)
    others = [await mill.start(a_step("other", queue="small")) for _ in range(3)]
    busy = await small.assignment()
    await mill.clock.sleep(5)

    await large.succeed(*(one.token for one in first))
    await small.succeed(busy.token)

    assert busy.token.run_id == others[0]
    assert (await small.assignment()).token.run_id == others[1]
