"""The contract of reading jobs, dead letters, workers, queues and events."""

from __future__ import annotations

import pytest

from tests.builders import NOON, a_run, a_run_id, a_session, a_start_key, a_task
from tests.contract.given import given, now_of, saved, task_of
from tidemill.domain.errors import Conflict, NotFound
from tidemill.domain.fingerprints import fingerprint
from tidemill.domain.identifiers import SECOND, RunId, TaskKey
from tidemill.domain.run import RunKind, RunState
from tidemill.domain.task_run import ALONE, TaskError, TaskRun, TaskState
from tidemill.engine import dead_letters
from tidemill.ports.queries import DeadQuery, Job, JobQuery, QueueRow
from tidemill.ports.store import Store

RUN_STATES = {
    TaskState.SUCCEEDED: RunState.SUCCEEDED,
    TaskState.FAILED: RunState.FAILED,
    TaskState.CANCELLED: RunState.CANCELLED,
}


async def a_job(store: Store, state: TaskState, workflow: str = "compute") -> Job:
    run_state = RUN_STATES.get(state, RunState.RUNNING)
    run = a_run(kind=RunKind.JOB, state=run_state, workflow=workflow)
    task = a_task(run_id=run.id, state=state)
    await given(store, run, task)
    return Job(run, task)


async def test_jobs_are_listed_by_the_state_of_their_task_newest_first(store: Store) -> None:
    jobs = [await a_job(store, state) for state in TaskState for _ in range(3)]
    await given(store, a_run(), a_task())

    for state in TaskState:
        found = await store.reader.jobs(JobQuery(namespace="default", states=(state,), limit=2))
        assert found == [job for job in jobs[::-1] if job.task.state is state][:2]
    open_states = (TaskState.READY, TaskState.RUNNING, TaskState.BACKOFF)
    found = await store.reader.jobs(JobQuery(namespace="default", states=open_states))
    assert found == [job for job in jobs[::-1] if job.task.state in open_states]


async def test_jobs_are_listed_page_by_page_and_by_type(store: Store) -> None:
    jobs = [await a_job(store, TaskState.READY, workflow) for workflow in ("a", "b", "a")]

    first = await store.reader.jobs(JobQuery(namespace="default", limit=2))
    rest = await store.reader.jobs(JobQuery(namespace="default", after=first[-1].run.id))

    assert first + rest == jobs[::-1]
    assert await store.reader.jobs(JobQuery(namespace="default", type="b")) == [jobs[1]]


async def test_a_run_that_is_no_job_is_not_found_among_jobs(store: Store) -> None:
    job, task = await a_job(store, TaskState.READY), a_task()
    await given(store, task)

    assert await store.reader.job("default", job.run.id) == job
    for run_id in (task.run_id, a_run_id(), RunId("orders")):
        with pytest.raises(NotFound, match=run_id):
            await store.reader.job("default", run_id)


def dead(message: str, **fields: object) -> TaskRun:
    error = TaskError(type="ValueError", message=message, traceback="x" * 5_000)
    return a_task(state=TaskState.FAILED, error=error, **fields)


async def test_dead_letters_that_failed_alike_are_one_group(store: Store) -> None:
    letters = [
        dead(f"order {number} has no 'home'\0", ended_at=NOON + number) for number in range(3)
    ]
    other = dead("boom")
    await given(store, *letters, other)

    groups = await store.reader.dead_groups("default")

    assert [group.count for group in groups] == [3, 1]
    assert groups[0].fingerprint == fingerprint(letters[0].error)
    assert groups[0].message == "order 2 has no 'home'\0"
    assert (groups[0].newest, groups[0].latest_at) == (letters[2].key, NOON + 2)
    assert (groups[0].type, groups[0].workflow, groups[0].earliest_at) == (
        "ValueError",
        "orders",
        NOON,
    )


async def test_dead_letters_are_found_by_workflow_and_fingerprint(store: Store) -> None:
    run = a_run(workflow="invoices")
    letters = [dead("order 1"), dead("boom"), dead("order 2"), dead("order 3", run_id=run.id)]
    await given(store, run, *letters)
    alike = fingerprint(letters[0].error)

    async def found(**conditions: object) -> list[TaskRun]:
        query = DeadQuery(namespace="default", **conditions)  # type: ignore[arg-type]
        return await store.reader.dead_letters(query)

    expected = sorted((letters[0], letters[2], letters[3]), key=lambda one: one.run_id)[::-1]
    assert await found(fingerprint=alike) == expected
    assert await found(fingerprint=alike, limit=1) == expected[:1]
    assert await found(fingerprint=alike, after=expected[0].key) == expected[1:]
    assert await found(workflow="invoices") == [letters[3]]
    assert await found(workflow="invoices", fingerprint=fingerprint(letters[1].error)) == []


async def test_a_letter_without_an_error_has_a_group_too(store: Store) -> None:
    await given(store, a_task(state=TaskState.FAILED))

    (group,) = await store.reader.dead_groups("default")

    assert (group.fingerprint, group.type, group.count) == (fingerprint(None), "", 1)


async def test_a_discarded_task_stays_failed_and_is_no_dead_letter(store: Store) -> None:
    letter = dead("boom")
    await given(store, letter)

    await dead_letters.discard(store, "default", letter.key)
    await dead_letters.discard(store, "default", letter.key)

    assert await task_of(store, letter.key) == letter
    assert await store.reader.dead_letters(DeadQuery(namespace="default")) == []
    assert await store.reader.dead_groups("default") == []
    assert (await store.reader.counts("default")).dead_letters == 0


async def test_a_discarded_task_that_fails_again_is_a_dead_letter_again(store: Store) -> None:
    letter = dead("boom")
    await given(store, letter)
    await dead_letters.discard(store, "default", letter.key)

    again = dead("boom", run_id=letter.run_id, ended_at=NOON + 60 * SECOND)
    await saved(store, a_task(run_id=letter.run_id))
    await saved(store, again)

    assert await store.reader.dead_letters(DeadQuery(namespace="default")) == [again]


async def test_only_a_failed_task_can_be_discarded(store: Store) -> None:
    task = a_task()
    await given(store, task)

    with pytest.raises(Conflict, match="READY"):
        await dead_letters.discard(store, "default", task.key)
    with pytest.raises(NotFound, match="position 7"):
        await dead_letters.discard(store, "default", TaskKey(task.run_id, 7))


async def test_workers_tell_how_many_of_their_slots_are_taken(store: Store) -> None:
    now = await now_of(store)
    busy, idle = a_session(expires_at=now + SECOND), a_session(expires_at=now + SECOND)
    running = [a_task(state=TaskState.RUNNING, session_id=busy.id) for _ in range(2)]
    await given(store, busy, idle, *running)

    rows = await store.reader.workers("default")

    assert [(row.session, row.busy) for row in rows] == [(busy, 2), (idle, 0)]


async def test_queues_tell_what_waits_and_runs_on_each_route(store: Store) -> None:
    await given(
        store,
        a_task(route="a", ready_at=NOON + 2),
        a_task(route="a", ready_at=NOON + 1, priority=5),
        a_task(route="a", hold=ALONE),
        a_task(route="a", state=TaskState.RUNNING),
        a_task(route="b", hold="paused"),
        a_task(route="c", state=TaskState.BACKOFF),
    )

    assert await store.reader.queues("default") == [
        QueueRow(route="a", ready=2, held=1, running=1, oldest_ready_at=NOON + 1),
        QueueRow(route="b", held=1),
    ]


async def test_counts_tell_a_namespace_at_a_glance(store: Store) -> None:
    states = [TaskState.READY, TaskState.RUNNING, TaskState.BACKOFF, TaskState.FAILED]
    run_id = a_run_id()
    tasks = [a_task(run_id=run_id, position=place, state=each) for place, each in enumerate(states)]
    await given(
        store, a_run(state=RunState.SUCCEEDED), *tasks, a_task(run_id=run_id, position=9, hold="x")
    )

    counts = await store.reader.counts("default")

    told = (counts.open_runs, counts.ready, counts.held, counts.running, counts.backoff)
    assert told == (1, 1, 1, 1, 1)
    assert (counts.dead_letters, counts.workers, counts.slots) == (1, 0, 0)


async def test_a_run_is_found_by_the_key_that_started_it(store: Store) -> None:
    key = a_start_key(kind="dag", key="order 4711")
    async with store.transaction() as tx:
        await tx.starts.take_keys([key])

    assert await store.reader.find_by_key("default", RunKind.DAG, "order 4711") == key.run_id
    assert await store.reader.find_by_key("default", RunKind.JOB, "order 4711") is None


async def test_events_are_read_by_position_without_a_cursor(store: Store) -> None:
    assert (await store.reader.events_head(), await store.reader.events_floor()) == (0, 1)
    async with store.transaction() as tx:
        for name in (b"a", b"b", b"c"):
            await tx.outbox.append(name)
        await tx.outbox.stamp(2)

    rows = await store.reader.events_after(0, 10)

    assert [(row.position, row.facts) for row in rows] == [(1, b"a"), (2, b"b")]
    assert [row.position for row in await store.reader.events_after(1, 10)] == [2]
    assert (await store.reader.events_head(), await store.reader.events_floor()) == (2, 1)


async def test_the_floor_rises_when_events_leave(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.outbox.append(b"a")
        await tx.outbox.append(b"b")
        await tx.outbox.stamp(10)
        await tx.outbox.move_cursor("relay", 1)
    async with store.transaction() as tx:
        await tx.outbox.prune(await tx.now() + SECOND, 10)

    assert await store.reader.events_floor() == 2
