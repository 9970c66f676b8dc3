"""What a transaction promises."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.builders import a_new_run, a_run, a_task
from tests.contract.given import given, task_of
from tidemill.domain.errors import CommitUnknown, NotFound, TidemillError, Unavailable
from tidemill.domain.task_run import TaskState
from tidemill.ports.store import NewRun, Store


async def test_a_failed_transaction_leaves_no_trace(store: Store) -> None:
    run = a_run()

    async def crash() -> None:
        async with store.transaction() as tx:
            await tx.runs.add([NewRun(run=run, input=b"{}")])
            await tx.tasks.add([a_task(run_id=run.id)])
            raise RuntimeError("crash before commit")

    with pytest.raises(RuntimeError):
        await crash()
    with pytest.raises(NotFound):
        await store.reader.run("default", run.id)
    assert await store.reader.tasks("default", run.id, -1, 10) == []


async def test_a_cancelled_transaction_leaves_no_trace_and_no_lock(store: Store) -> None:
    run, inside = a_run(), asyncio.Event()

    async def write() -> None:
        async with store.transaction() as tx:
            await tx.runs.add([NewRun(run=run, input=b"{}")])
            inside.set()
            await asyncio.Event().wait()

    writer = asyncio.create_task(write())
    await inside.wait()
    writer.cancel()
    await asyncio.wait([writer])

    async with store.transaction() as tx:
        assert await tx.runs.lock([run.id], wait=True) == []


async def test_after_a_refused_write_the_transaction_cannot_commit(store: Store) -> None:
    run = a_new_run()
    await given(store, run.run)

    async def swallow_the_error() -> None:
        async with store.transaction() as tx:
            await tx.outbox.append(b"[]")
            with pytest.raises(TidemillError):
                await tx.runs.add([run])

    with pytest.raises(Unavailable):
        await swallow_the_error()
    async with store.transaction() as tx:
        assert await tx.outbox.stamp(10) == 0


async def test_a_refused_write_is_not_worth_a_retry(store: Store) -> None:
    run = a_new_run()
    await given(store, run.run)

    with pytest.raises(TidemillError) as refusal:
        async with store.transaction() as tx:
            await tx.runs.add([run])

    assert not isinstance(refusal.value, Unavailable)


async def test_a_transaction_sees_its_own_writes(store: Store) -> None:
    new = a_new_run()

    async with store.transaction() as tx:
        await tx.runs.add([new])

        assert await tx.runs.lock([new.run.id], wait=True) == [new.run]


async def test_what_is_not_committed_is_not_read(store: Store) -> None:
    new, written, looked = a_new_run(), asyncio.Event(), asyncio.Event()

    async def write_and_give_up() -> None:
        async with store.transaction() as tx:
            await tx.runs.add([new])
            written.set()
            await asyncio.wait([looking], timeout=0.05)
            raise RuntimeError

    async def look() -> list[str]:
        await written.wait()
        found = await store.reader.find_runs("default", new.run.id, 10)
        looked.set()
        return [*found]

    looking = asyncio.create_task(look())
    with pytest.raises(RuntimeError):
        await write_and_give_up()
    assert await looking == []


async def test_a_read_inside_a_transaction_does_not_wait_for_it(store: Store) -> None:
    run = a_run()
    await given(store, run)

    async with store.transaction() as tx, asyncio.timeout(5):
        await tx.runs.lock([run.id], wait=True)

        assert await store.payloads.inputs([run.id]) == {run.id: b"{}"}


async def test_thirty_two_writers_lose_no_update(store: Store) -> None:
    task = a_task()
    await given(store, task)

    async def count_up() -> None:
        async with store.transaction() as tx:
            await tx.runs.lock([task.run_id], wait=True)
            (found,) = await tx.tasks.lock([task.key])
            await asyncio.sleep(0)
            await tx.tasks.save([msgspec.structs.replace(found, failures=found.failures + 1)])

    async def patiently() -> None:
        while True:
            try:
                return await count_up()
            except CommitUnknown:
                raise
            except Unavailable:
                continue  # others held the row for longer than a connection waits

    async with asyncio.timeout(60), asyncio.TaskGroup() as writers:
        for _ in range(32):
            writers.create_task(patiently())

    assert (await task_of(store, task.key)).failures == 32


async def test_the_clock_of_the_database_goes_on_inside_a_transaction(store: Store) -> None:
    async with store.transaction() as tx:
        first = await tx.now()
        second = await tx.now()

    assert first <= second


async def test_an_empty_batch_does_nothing(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.runs.add([])
        await tx.runs.save([])
        await tx.tasks.save([])
        await tx.history.add_results([])
        await tx.history.add_logs([], 10)
        await tx.sessions.close([])

        assert await tx.runs.lock([], wait=True) == []
        assert await tx.tasks.lock([]) == []
        assert await tx.starts.take_keys([]) == []
        assert await tx.sessions.lock([]) == set()
    assert await store.payloads.results([]) == {}
    assert await store.renew_sessions([], 1) == set()


async def test_closing_twice_is_harmless(store: Store) -> None:
    await given(store, a_task(state=TaskState.PENDING))

    await store.close()
    await store.close()


async def test_a_closed_store_is_unavailable(store: Store) -> None:
    await store.close()

    with pytest.raises(Unavailable):
        await given(store, a_task())
    with pytest.raises(Unavailable):
        await store.watch.ready_lanes()
