"""A mill at rest asks little of its store: hints hurry, and looks in between are few."""

from __future__ import annotations

from tests.roles.mill import Mill, Stream, on_a_mill
from tidemill.protocol.messages import Holdings

QUERIES_PER_SECOND_MAX = 5
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK")
SECONDS = 60


async def statements_of(mill: Mill, workers: list[Stream]) -> list[str]:
    """What the store is asked in a minute, while the workers say that they hold nothing."""
    heard: list[str] = []
    await mill.clock.sleep(10)
    mill.store._writer.raw.set_trace_callback(heard.append)
    for _ in range(SECONDS):
        for worker in workers:
            worker.send(Holdings(held=(), slots=10))
        await mill.clock.sleep(1)
    mill.store._writer.raw.set_trace_callback(None)
    return heard


@on_a_mill
async def test_an_idle_scheduler_asks_its_store_at_most_five_times_a_second(mill: Mill) -> None:
    workers = [mill.worker(worker=name) for name in ("one", "two")]
    for worker in workers:
        await worker.open()

    heard = await statements_of(mill, workers)

    control = [text for text in heard if text.startswith(CONTROL)]
    assert 0 < len(heard) - len(control) <= QUERIES_PER_SECOND_MAX * SECONDS
    assert len(heard) <= 6 * SECONDS


@on_a_mill
async def test_more_workers_do_not_make_an_idle_scheduler_ask_more(mill: Mill) -> None:
    few = [mill.worker(worker=name) for name in ("one", "two")]
    for worker in few:
        await worker.open()
    with_few = await statements_of(mill, few)
    many = [mill.worker(worker=f"worker-{number}") for number in range(20)]
    for worker in many:
        await worker.open()

    with_many = await statements_of(mill, few + many)

    # Which looks fall into a minute is chance; one more for each worker would be 400.
    assert abs(len(with_many) - len(with_few)) <= 20
