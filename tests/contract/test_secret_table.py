"""The contract of SecretTable, and of secrets among the payloads."""

from __future__ import annotations

from tidemill.ports.secrets import SecretKey
from tidemill.ports.store import Store

TOKEN = SecretKey("default", "token")


async def put(store: Store, key: SecretKey, sealed: bytes) -> bool:
    async with store.transaction() as tx:
        return await tx.secrets.put(key, sealed)


async def test_a_secret_is_new_once_and_then_replaced(store: Store) -> None:
    first = await put(store, TOKEN, b"\x00one")
    second = await put(store, TOKEN, b"\xfftwo")

    assert (first, second) == (True, False)
    assert await store.payloads.secrets([TOKEN]) == {TOKEN: b"\xfftwo"}


async def test_a_secret_belongs_to_its_namespace(store: Store) -> None:
    elsewhere = SecretKey("other", "token")
    await put(store, TOKEN, b"here")
    await put(store, elsewhere, b"there")

    found = await store.payloads.secrets([elsewhere, SecretKey("third", "token")])

    assert found == {elsewhere: b"there"}


async def test_names_are_listed_in_order_with_their_times(store: Store) -> None:
    for name in ("b", "a", "c"):
        await put(store, SecretKey("default", name), b"x")
    await put(store, SecretKey("default", "a"), b"y")

    async with store.transaction() as tx:
        rows = await tx.secrets.names("default", 2)

    assert [row.name for row in rows] == ["a", "b"]
    assert rows[0].created_at < rows[0].changed_at
    assert rows[1].created_at == rows[1].changed_at


async def test_what_was_removed_is_gone(store: Store) -> None:
    await put(store, TOKEN, b"x")

    async with store.transaction() as tx:
        removed = [await tx.secrets.remove(TOKEN) for _ in range(2)]

    assert removed == [True, False]
    assert await store.payloads.secrets([TOKEN]) == {}
