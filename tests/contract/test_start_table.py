"""The contract of StartTable."""

from __future__ import annotations

import asyncio

from tests.builders import a_run, a_start_key, a_version
from tests.contract.given import given, now_of
from tidemill.domain.identifiers import SECOND, VersionId
from tidemill.domain.run import RunState
from tidemill.ports.store import NewRun, StartKey, Store


async def taken(store: Store, *keys: StartKey) -> list[StartKey]:
    async with store.transaction() as tx:
        return await tx.starts.take_keys(keys)


async def test_a_free_key_is_taken(store: Store) -> None:
    key = a_start_key()

    assert await taken(store, key) == [key]


async def test_the_loser_of_a_start_key_sees_the_winner(store: Store) -> None:
    winner, loser = a_start_key(), a_start_key(body_hash="other")
    await taken(store, winner)

    assert await taken(store, loser) == [winner]


async def test_of_many_who_want_a_key_at_once_all_see_the_same_winner(store: Store) -> None:
    keys = [a_start_key() for _ in range(8)]

    answers = await asyncio.gather(*(taken(store, key) for key in keys))

    assert len({answer[0].run_id for answer in answers}) == 1


async def test_answers_come_in_the_order_of_the_questions(store: Store) -> None:
    held = a_start_key(key="b")
    await taken(store, held)
    asked = [a_start_key(key=name) for name in ("c", "b", "a")]

    assert await taken(store, *asked) == [asked[0], held, asked[2]]


async def test_within_a_batch_the_first_one_wins(store: Store) -> None:
    first, second = a_start_key(), a_start_key()

    assert await taken(store, first, second) == [first, first]


async def test_keys_of_two_namespaces_or_kinds_are_two_keys(store: Store) -> None:
    keys = [a_start_key(), a_start_key(namespace="other"), a_start_key(kind="job")]

    assert await taken(store, *keys) == keys


async def test_a_key_taken_by_a_transaction_that_failed_is_free(store: Store) -> None:
    first, second = a_start_key(), a_start_key()
    try:
        async with store.transaction() as tx:
            await tx.starts.take_keys([first])
            raise RuntimeError
    except RuntimeError:
        pass

    assert await taken(store, second) == [second]


async def test_an_expired_key_is_free_when_its_run_has_ended(store: Store) -> None:
    past = await now_of(store) - SECOND
    running, ended = a_run(), a_run(state=RunState.SUCCEEDED)
    await given(store, running, ended)
    busy = a_start_key(key="busy", run_id=running.id, expires_at=past)
    free = a_start_key(key="free", run_id=ended.id, expires_at=past)
    fresh = a_start_key(key="fresh", run_id=ended.id, expires_at=past + 60 * SECOND)
    await taken(store, busy, free, fresh)
    asked = [a_start_key(key=name) for name in ("busy", "free", "fresh")]

    assert await taken(store, *asked) == [busy, asked[1], fresh]


async def test_a_definition_is_stored_once(store: Store) -> None:
    version = a_version(id=VersionId("v7"), spec=b'{"name": "orders"}')
    other = a_version(id=VersionId("v8"))

    async with store.transaction() as tx:
        await tx.starts.add_versions([version, other, version])
        await tx.starts.add_versions([version])

    assert await store.payloads.versions([version.id, VersionId("none")]) == [version]


async def test_the_same_definition_in_two_namespaces_is_told_once(store: Store) -> None:
    one, other = a_version(namespace="a"), a_version(namespace="b")

    async with store.transaction() as tx:
        await tx.starts.add_versions([one, other])

    (found,) = await store.payloads.versions([one.id])
    assert found.spec == one.spec


async def test_a_start_is_stored_whole(store: Store) -> None:
    run = a_run()
    key = a_start_key(run_id=run.id)

    async with store.transaction() as tx:
        (holder,) = await tx.starts.take_keys([key])
        await tx.runs.add([NewRun(run=run, input=b"[1]")])

    assert holder == key
    assert await store.reader.run("default", run.id) == run
