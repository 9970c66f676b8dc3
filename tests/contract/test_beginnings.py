"""The contract of Transaction.begin: runs that begin alike, written together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tests.builders import a_run, a_run_id, a_task
from tidemill.domain.identifiers import Lane, RunId
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.ports.queries import RunQuery
from tidemill.ports.store import Beginning, Store, Template

replace = msgspec.structs.replace


def a_template(name: str, roots: int, **fields: object) -> Template:
    """A run with some READY tasks and one that waits for them."""
    run = a_run(workflow=name, open=roots + 1, next_position=roots + 1, **fields)
    tasks = [
        a_task(position=place, node=place, state=TaskState.READY, ready_at=7)
        for place in range(roots)
    ]
    last = a_task(position=roots, node=roots, waiting=roots, state=TaskState.PENDING)
    return Template(run, [*tasks, last])


def beginnings(templates: Sequence[Template], each: int) -> list[Beginning]:
    """Runs of the templates in turns, every second one with a key."""
    return [
        Beginning(
            a_run_id(),
            place % len(templates),
            f"key {place}" if place % 2 else None,
            b'{"text":"\\u0000 \xc3\xbc","n":%d}' % place,
        )
        for place in range(each * len(templates))
    ]


async def begin(store: Store, templates: Sequence[Template], runs: Sequence[Beginning]) -> None:
    async with store.transaction() as tx:
        await tx.begin(templates, runs)


async def stored(store: Store, run_id: RunId) -> tuple[Run, list[TaskRun]]:
    run = await store.reader.run("default", run_id)
    return run, await store.reader.tasks("default", run_id, -1, 100)


@pytest.mark.parametrize(("kinds", "each"), [(1, 1), (1, 40), (3, 2), (3, 20), (60, 2)])
async def test_every_run_is_stored_as_its_template_says(
    store: Store, kinds: int, each: int
) -> None:
    templates = [a_template(f"w{kind}", kind % 3 + 1) for kind in range(kinds)]
    runs = beginnings(templates, each)

    await begin(store, templates, runs)

    inputs = await store.payloads.inputs([one.run_id for one in runs])
    assert inputs == {one.run_id: one.input for one in runs}
    for run_id, number, key, _ in runs:
        template = templates[number]
        run, tasks = await stored(store, run_id)
        assert run == replace(template.run, id=run_id, key=key)
        assert tasks == [replace(task, run_id=run_id) for task in template.tasks]


@pytest.mark.parametrize("each", [2, 20])
async def test_ready_tasks_wait_in_the_order_given(store: Store, each: int) -> None:
    templates = [a_template("one", 1), a_template("two", 3), a_template("three", 2)]
    runs = beginnings(templates, each)
    await begin(store, templates[:1], beginnings(templates[:1], 1))  # who was first stays first

    await begin(store, templates, runs)

    route = templates[0].tasks[0].route
    async with store.transaction() as tx:
        claim = await tx.tasks.claim(Lane("default", route, 0), floor=0, limit=1_000, alone=False)
    claimed = [task.key for task in claim.tasks][1:]
    roots = [len(template.tasks) - 1 for template in templates]
    assert claimed == [(one.run_id, place) for one in runs for place in range(roots[one.template])]


async def test_runs_are_found_by_their_labels(store: Store) -> None:
    templates = [a_template("red", 1, labels={"color": "red"}), a_template("plain", 1)]
    runs = beginnings(templates, 10)

    await begin(store, templates, runs)

    found = await store.reader.runs(
        RunQuery(namespace="default", label=("color", "red"), limit=100)
    )
    assert {run.id for run in found} == {one.run_id for one in runs if one.template == 0}


async def test_a_run_without_tasks_yet_is_stored_alone(store: Store) -> None:
    template = Template(a_run(), [])
    runs = beginnings([template], 10)

    await begin(store, [template], runs)

    assert (await stored(store, runs[0].run_id))[1] == []
