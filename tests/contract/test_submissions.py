"""Submitting runs, many at a time, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import msgspec
import pytest

from tests.builders import a_run, a_start_key
from tests.contract.given import given, now_of
from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import CommitUnknown, Conflict, InvalidInput, TidemillError, Unavailable
from tidemill.domain.identifiers import SECOND
from tidemill.domain.run import RunKind, RunState
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine.preparing import NEVER, ShapeCache, StartRequest
from tidemill.engine.runs import start
from tidemill.engine.shapes import JobWish, TaskWish, dag_request, job_request
from tidemill.engine.starting import Started
from tidemill.engine.submissions import Submissions
from tidemill.ports.queries import JobQuery, RunQuery
from tidemill.ports.rows import Beginning, Template
from tidemill.ports.store import Store, Transaction
from tidemill.runtime.system import SystemEntropy

TYPES = ("compute", "default")


def a_job(payload: Any = None, key: str | None = None, **fields: Any) -> StartRequest:
    wish = JobWish(type="compute", payload=payload, key=key, **fields)
    return job_request(wish, "default", TYPES)


def a_dag(name: str) -> StartRequest:
    return dag_request(name, [TaskWish(id="a")], "default", TYPES, "default")


def submissions(store: Store, **options: Any) -> Submissions:
    return Submissions(store, MemoryBus(), SystemEntropy(), **options)


class Spy:
    """A store that counts commits, and goes wrong when it is told to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reader, self.payloads, self.watch = store.reader, store.payloads, store.watch
        self.commits = 0
        self.after: list[TidemillError] = []  # raised after a commit
        self.refused: set[str] = set()  # keys that the database never takes
        self.told = ""

    def alarm(self) -> str:
        return self.told

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._store.transaction() as tx:
            begin = tx.begin

            async def picky(templates: Sequence[Template], runs: Sequence[Beginning]) -> None:
                await begin(templates, runs)
                if any(run.key in self.refused for run in runs):
                    raise TidemillError("the database never takes this")

            tx.begin = picky  # type: ignore[method-assign]
            yield tx
        self.commits += 1
        if self.after:
            raise self.after.pop()


async def test_jobs_submitted_together_are_one_commit(store: Store) -> None:
    spy = Spy(store)
    desk = submissions(spy, commits_at_once=1)  # type: ignore[arg-type]

    told = await asyncio.gather(*(desk.submit(a_job(place)) for place in range(50)))

    assert spy.commits == 1
    jobs = await store.reader.jobs(JobQuery(namespace="default", limit=100))
    assert {job.run.id for job in jobs} == {one.run_id for one in told}
    assert {job.task.state for job in jobs} == {"READY"}
    inputs = await store.payloads.inputs([one.run_id for one in told])
    assert [inputs[one.run_id] for one in told][:2] == [b'{"payload":0}', b'{"payload":1}']


async def test_a_run_keeps_its_kind_its_key_and_its_labels(store: Store) -> None:
    told = await submissions(store).submit(a_job(key="order-1", labels={"team": "blue"}))

    run = await store.reader.run("default", told.run_id)

    assert (run.kind, run.key, run.labels) == (RunKind.JOB, "order-1", {"team": "blue"})
    query = RunQuery(namespace="default", label=("team", "blue"))
    assert await store.reader.runs(query) == [run]


async def test_one_key_starts_one_run_whoever_asks_and_whenever(store: Store) -> None:
    desk, other = submissions(store), submissions(store)

    told = await asyncio.gather(
        *(each.submit(a_job(1, "k")) for _ in range(20) for each in (desk, other))
    )
    later = await desk.submit(a_job(1, "k"))

    assert len({one.run_id for one in (*told, later)}) == 1
    assert sum(one.created for one in told) == 1
    assert not later.created


async def test_a_key_with_another_body_is_refused_alone(store: Store) -> None:
    spy = Spy(store)
    desk = submissions(spy, commits_at_once=1)  # type: ignore[arg-type]
    requests = [a_job(1, "k"), a_job(2, "k"), a_job(3), a_job(1, "k", labels={"a": "b"})]

    told = await desk.submit_many(requests)

    assert spy.commits == 1
    assert [type(one).__name__ for one in told] == ["Started", "Conflict", "Started", "Conflict"]
    assert isinstance(told[1], Conflict)
    assert told[1].code == "KEY_REUSED"


async def test_keys_of_two_kinds_do_not_meet(store: Store) -> None:
    workflow = Workflow(name="w", tasks=(TaskSpec(id="a", executor="noop"),))

    told = await submissions(store).submit_many(
        [a_job(key="k"), StartRequest(workflow=workflow, key="k"), a_dag("k")]
    )

    assert all(isinstance(one, Started) and one.created for one in told)


async def test_a_dag_of_the_same_id_is_there_already_even_with_the_same_body(store: Store) -> None:
    desk = submissions(store)
    first = await desk.submit(a_dag("order 4711"))

    with pytest.raises(Conflict) as refused:
        await desk.submit(a_dag("order 4711"))

    assert refused.value.code == "ALREADY_EXISTS"
    found = await store.reader.find_by_key("default", RunKind.DAG, "order 4711")
    assert found == first.run_id
    async with store.transaction() as tx:
        (key,) = await tx.starts.take_keys([a_start_key(kind="dag", key="order 4711")])
    assert key.expires_at == NEVER


async def test_what_the_store_refuses_is_refused_alone(store: Store) -> None:
    spy = Spy(store)
    spy.refused = {"bad", "worse"}
    desk = submissions(spy, commits_at_once=1)  # type: ignore[arg-type]
    keys = ["a", "bad", "b", "c", "worse", "d"]

    told = await desk.submit_many([a_job(key=key) for key in keys])

    assert [isinstance(one, Started) for one in told] == [key not in spy.refused for key in keys]
    jobs = await store.reader.jobs(JobQuery(namespace="default"))
    assert {job.run.key for job in jobs} == {"a", "b", "c", "d"}


async def test_a_commit_of_unknown_result_is_found_again(store: Store) -> None:
    spy = Spy(store)
    spy.after = [CommitUnknown("lost")]
    desk = submissions(spy)  # type: ignore[arg-type]

    told = await desk.submit_many([a_job(1), a_job(2, "k"), a_dag("d")])

    assert all(isinstance(one, Started) and one.created for one in told)
    assert len(await store.reader.runs(RunQuery(namespace="default"))) == 3


async def test_when_the_store_is_away_everyone_is_told(store: Store) -> None:
    spy = Spy(store)
    spy.after = [Unavailable("away")] * 50
    desk = submissions(spy)  # type: ignore[arg-type]

    told = await desk.submit_many([a_job(1), a_job(2)])

    assert [type(one).__name__ for one in told] == ["Unavailable", "Unavailable"]


async def test_an_input_or_key_that_does_not_fit_is_refused_before_anything(store: Store) -> None:
    desk = submissions(store)
    large = a_job("x" * 300_000)

    told = await desk.submit_many([large, a_job(key=""), a_job(key="a\nb"), a_job(1)])

    codes = [one.problems[0].code if isinstance(one, InvalidInput) else None for one in told]
    assert codes == ["TOO_LARGE", "BAD_KEY", "BAD_KEY", None]
    with pytest.raises(InvalidInput):
        await desk.submit(large)


async def test_too_many_who_wait_are_refused(store: Store) -> None:
    desk = submissions(store, waiting_max=3)

    told = await asyncio.gather(*(desk.submit(a_job()) for _ in range(5)), return_exceptions=True)

    refused = [one for one in told if isinstance(one, Unavailable)]
    assert [one.code for one in refused] == ["OVERLOADED"] * 2


async def test_closing_sees_those_that_wait_to_their_commit(store: Store) -> None:
    desk = submissions(store)
    waiting = asyncio.create_task(desk.submit(a_job()))
    await asyncio.sleep(0)

    await desk.close()

    assert (await waiting).created
    with pytest.raises(Unavailable):
        await desk.submit(a_job())


async def test_a_large_run_is_accepted_and_its_tasks_are_left_to_turns(store: Store) -> None:
    tasks = tuple(TaskSpec(id=f"t{place}", executor="noop") for place in range(2_001))

    told = await submissions(store).submit(
        StartRequest(workflow=Workflow(name="large", tasks=tasks))
    )

    run = await store.reader.run("default", told.run_id)
    assert (run.state, run.open) == (RunState.PENDING, 2_001)
    assert await store.reader.tasks("default", run.id, -1, 10) == []


async def test_a_definition_is_stored_though_another_process_knows_it(store: Store) -> None:
    first, second = submissions(store), submissions(store)

    for desk in (first, first, second):
        told = await desk.submit(a_job())

    run = await store.reader.run("default", told.run_id)
    (version,) = await store.payloads.versions([run.version_id])
    assert version.name == "compute"


async def test_a_definition_is_stored_anew_when_the_database_may_have_lost_it(store: Store) -> None:
    spy = Spy(store)
    desk = submissions(spy)  # type: ignore[arg-type]
    request = a_job(max_retries=17)
    with suppress(RuntimeError):
        async with store.transaction() as tx:
            spy.transaction = lambda: nullcontext(tx)  # type: ignore[assignment, return-value, method-assign]
            await desk.submit(request)
            raise RuntimeError("the database goes back")
    del spy.transaction
    spy.told = "the database has gone back"

    told = await desk.submit(request)

    run = await store.reader.run("default", told.run_id)
    assert len(await store.payloads.versions([run.version_id])) == 1


async def test_starting_many_tells_the_first_refusal_and_starts_the_others(store: Store) -> None:
    with pytest.raises(Conflict, match="'k'"):
        await start(store, MemoryBus(), SystemEntropy(), [a_job(1, "k"), a_job(2, "k"), a_job(3)])

    assert len(await store.reader.runs(RunQuery(namespace="default"))) == 2


def test_shapes_used_last_are_kept_and_found_by_content() -> None:
    cache = ShapeCache(nodes_max=2)
    workflows = [Workflow(name=name, tasks=(TaskSpec(id="a", executor="x"),)) for name in "abc"]
    copy = msgspec.json.decode(msgspec.json.encode(workflows[2]), type=Workflow)

    shapes = [cache.of("default", workflow) for workflow in workflows]

    assert cache.of("default", workflows[2]) is shapes[2]
    assert cache.of("default", copy) is shapes[2]
    assert cache.of("default", workflows[0]) is not shapes[0]


async def test_keys_that_are_free_again_are_forgotten(store: Store) -> None:
    past = await now_of(store) - SECOND
    running, ended = a_run(), a_run(state=RunState.SUCCEEDED)
    await given(store, running, ended)
    busy = a_start_key(key="busy", run_id=running.id, expires_at=past - 1)
    free = [a_start_key(key=f"k{place}", run_id=ended.id, expires_at=past) for place in range(3)]
    fresh = a_start_key(key="fresh", run_id=ended.id, expires_at=past + 60 * SECOND)
    async with store.transaction() as tx:
        await tx.starts.take_keys([busy, *free, fresh])

    async with store.transaction() as tx:
        seen = [await tx.starts.prune_keys(2) for _ in range(4)]

    assert seen == [2, 2, 0, 0]
    kept = [
        key.key
        for key in (busy, *free, fresh)
        if await store.reader.find_by_key("default", RunKind.RUN, key.key)
    ]
    assert kept == ["busy", "fresh"]
