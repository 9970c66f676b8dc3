"""The contract of OutboxTable."""

from __future__ import annotations

from tests.contract.given import now_of
from tidemill.domain.identifiers import SECOND
from tidemill.ports.store import Store


async def appended(store: Store, *rows: bytes) -> None:
    for facts in rows:
        async with store.transaction() as tx:
            await tx.outbox.append(facts)


async def stamped(store: Store, limit: int = 100) -> int:
    async with store.transaction() as tx:
        return await tx.outbox.stamp(limit)


async def read(store: Store, after: int = 0) -> list[tuple[int, bytes]]:
    async with store.transaction() as tx:
        return [(row.position, row.facts) for row in await tx.outbox.read(after, 100)]


async def lead(store: Store, holder: str, micros: int) -> bool:
    async with store.transaction() as tx:
        return await tx.outbox.lead("relay", holder, micros)


async def test_rows_are_read_only_once_stamped(store: Store) -> None:
    await appended(store, b"[1]", b"[2]")
    assert await read(store) == []

    assert await stamped(store) == 2

    assert await read(store) == [(1, b"[1]"), (2, b"[2]")]


async def test_positions_are_dense_over_many_stampings(store: Store) -> None:
    await appended(store, b"a", b"b", b"c")
    assert await stamped(store, limit=2) == 2
    await appended(store, b"d")
    assert await stamped(store) == 2
    assert await stamped(store) == 0

    assert await read(store, after=1) == [(2, b"b"), (3, b"c"), (4, b"d")]


async def test_a_cursor_begins_at_zero_and_only_goes_forward(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.outbox.cursor("bus") == 0
        await tx.outbox.move_cursor("bus", 5)
        await tx.outbox.move_cursor("bus", 3)

    async with store.transaction() as tx:
        assert await tx.outbox.cursor("bus") == 5
        assert await tx.outbox.cursor("mail") == 0


async def test_a_reader_that_passes_over_has_come_as_far_as_positions_were_given(
    store: Store,
) -> None:
    await appended(store, b"a", b"b")
    await stamped(store, limit=1)

    async with store.transaction() as tx:
        await tx.outbox.pass_over("bus")
        assert await tx.outbox.cursor("bus") == 1
        await tx.outbox.stamp(10)
        await tx.outbox.pass_over("bus")
        assert await tx.outbox.cursor("bus") == 2


async def test_rows_leave_behind_all_cursors_only(store: Store) -> None:
    await appended(store, b"a", b"b", b"c")
    await stamped(store)
    later = await now_of(store) + SECOND
    async with store.transaction() as tx:
        assert await tx.outbox.prune(later, 10) == 0
        await tx.outbox.move_cursor("bus", 3)
        await tx.outbox.move_cursor("mail", 2)
        assert await tx.outbox.prune(later - 3_600 * SECOND, 10) == 0
        assert await tx.outbox.prune(later, 1) == 1
        assert await tx.outbox.prune(later, 10) == 1

    assert await read(store) == [(3, b"c")]


async def test_positions_go_on_after_all_rows_have_left(store: Store) -> None:
    await appended(store, b"a")
    await stamped(store)
    async with store.transaction() as tx:
        await tx.outbox.move_cursor("bus", 1)
        await tx.outbox.prune(await tx.now() + SECOND, 10)

    await appended(store, b"b")
    await stamped(store)

    assert await read(store) == [(2, b"b")]


async def test_one_holder_leads_until_its_time_is_over(store: Store) -> None:
    assert await lead(store, "a", 60 * SECOND)
    assert not await lead(store, "b", 60 * SECOND)
    assert await lead(store, "a", 0)
    assert await lead(store, "b", 60 * SECOND)
    assert not await lead(store, "a", 60 * SECOND)


async def test_leaders_of_two_names_do_not_meet(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.outbox.lead("relay", "a", 60 * SECOND)
        assert await tx.outbox.lead("cron", "b", 60 * SECOND)
