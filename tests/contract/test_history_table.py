"""The contract of HistoryTable and Payloads."""

from __future__ import annotations

from tests.builders import NOON, a_run, a_task
from tests.contract.given import given
from tidemill.domain.identifiers import TaskKey, Token
from tidemill.domain.task_run import Attempt, Reason, TaskError
from tidemill.ports.store import LogChunk, Store, TaskResult


async def logged(store: Store, token: Token, *texts: str, bytes_max: int = 100) -> None:
    async with store.transaction() as tx:
        await tx.history.add_logs([LogChunk(token, text) for text in texts], bytes_max)


async def test_attempts_come_back_oldest_first(store: Store) -> None:
    task = a_task()
    await given(store, task)
    attempts = [
        Attempt(
            run_id=task.run_id,
            position=task.position,
            epoch=epoch,
            attempt=epoch,
            reason=Reason.FAILED,
            session_id=None,
            started_at=NOON if epoch == 2 else None,
            ended_at=NOON + epoch,
            error=TaskError(type="E", message="boom", traceback="line 1") if epoch == 2 else None,
        )
        for epoch in (3, 1, 2)
    ]

    async with store.transaction() as tx:
        await tx.history.add_attempts(attempts)

    found = await store.reader.attempts("default", task.key)
    assert found == sorted(attempts, key=lambda attempt: attempt.epoch)


async def test_results_are_read_in_batches_and_missing_ones_left_out(store: Store) -> None:
    task = a_task()
    other = a_task(run_id=task.run_id, position=1)
    await given(store, task, other)

    async with store.transaction() as tx:
        await tx.history.add_results([TaskResult(task.key, b'{"a": 1}')])

    keys = [task.key, other.key, TaskKey(task.run_id, 99)]
    assert await store.payloads.results(keys) == {task.key: b'{"a": 1}'}


async def test_inputs_are_read_in_batches(store: Store) -> None:
    one, other = a_run(), a_run()
    await given(store, one, other)

    found = await store.payloads.inputs([other.id, one.id, a_run().id])

    assert found == {one.id: b"{}", other.id: b"{}"}


async def test_output_is_kept_by_attempt_in_the_order_of_writing(store: Store) -> None:
    task = a_task()
    await given(store, task)
    first, second = Token(task.run_id, 0, 1), Token(task.run_id, 0, 2)

    await logged(store, first, "a", "b")
    await logged(store, second, "x")
    await logged(store, first, "c\0")

    assert await store.reader.logs("default", task.key) == {1: "abc\0", 2: "x"}


async def test_only_the_last_bytes_of_an_attempt_are_kept(store: Store) -> None:
    task = a_task()
    await given(store, task)

    await logged(store, task.token, "0123456789", bytes_max=8)
    await logged(store, task.token, "abc", bytes_max=8)

    assert await store.reader.logs("default", task.key) == {
        0: "… 5 bytes of earlier output dropped …\n56789abc"
    }


async def test_output_is_never_cut_inside_a_character(store: Store) -> None:
    task = a_task()
    await given(store, task)

    await logged(store, task.token, "äöü", bytes_max=5)
    assert await store.reader.logs("default", task.key) == {
        0: "… 1 bytes of earlier output dropped …\nöü"
    }

    await logged(store, task.token, "€", bytes_max=5)
    assert await store.reader.logs("default", task.key) == {
        0: "… 4 bytes of earlier output dropped …\nü€"
    }


async def test_what_lies_before_a_gap_is_counted_and_not_kept(store: Store) -> None:
    task = a_task()
    await given(store, task)

    await logged(store, task.token, "before")
    async with store.transaction() as tx:
        chunks = [LogChunk(task.token, "12"), LogChunk(task.token, "after", 1_000)]
        await tx.history.add_logs(chunks, 100)
    await logged(store, task.token, " all")

    assert await store.reader.logs("default", task.key) == {
        0: "… 1008 bytes of earlier output dropped …\nafter all"
    }
