"""The floor under the numbers of the outbox that are looked at, and what it may not pass over."""

from __future__ import annotations

from tidemill.ports.store import Store
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.stamp_floor import SETTLED_SECONDS, WHOLE_LOOK_EVERY, StampFloor


def moved(floor: StampFloor, times: int) -> list[int]:
    return [floor.at(SETTLED_SECONDS * (turn + 1)) for turn in range(times)]


def test_the_floor_follows_after_two_spans_of_time() -> None:
    floor = StampFloor()
    floor.found(70)

    assert moved(floor, 2) == [0, 70]
    assert floor.at(SETTLED_SECONDS * 2.5) == 70


def test_a_floor_never_sinks_to_a_row_that_came_late() -> None:
    floor = StampFloor()
    floor.found(70)
    floor.found(60)

    assert moved(floor, 2) == [0, 70]


def test_now_and_then_there_is_a_whole_look() -> None:
    floor = StampFloor()
    floor.found(70)

    assert moved(floor, WHOLE_LOOK_EVERY)[-1] == 0
    assert floor.at(SETTLED_SECONDS * (WHOLE_LOOK_EVERY + 0.5)) == 70


async def test_rows_above_the_floor_are_stamped(postgres: PostgresStore) -> None:
    postgres._stamp_floor = StampFloor()
    assert await stamped_after_a_fact(postgres) == 1
    postgres._stamp_floor.at(1e9)
    postgres._stamp_floor.at(2e9)

    assert await stamped_after_a_fact(postgres) == 1


async def stamped_after_a_fact(store: Store) -> int:
    async with store.transaction() as tx:
        await tx.outbox.append(b"[]")
    async with store.transaction() as tx:
        return await tx.outbox.stamp(10)
