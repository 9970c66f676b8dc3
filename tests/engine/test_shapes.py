"""Jobs, steps and DAGs as workflows, and back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from tidemill.domain.errors import InvalidInput
from tidemill.domain.inputs import encode_input
from tidemill.domain.plan import decode_plan, encode_workflow, version_of
from tidemill.domain.run import RunKind
from tidemill.domain.validation import check_workflow
from tidemill.engine import shapes
from tidemill.engine.preparing import StartRequest
from tidemill.engine.shapes import (
    JobWish,
    StepWish,
    TaskWish,
    dag_request,
    job_payload,
    job_request,
    read_steps,
    read_tasks,
    steps_request,
)

TYPES = ("compute", "default", "flaky")
payloads = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=5), parts, max_size=3)
    ),
    max_leaves=8,
)
titles = st.text(min_size=1, max_size=20)


def stored(request: StartRequest) -> bytes:
    """The input of a request as its run keeps it; the definition is one that the store reads."""
    spec = encode_workflow(request.workflow)
    assert decode_plan(version_of("default", spec), spec).workflow == request.workflow
    assert check_workflow(request.workflow) == request.workflow
    return encode_input(request.workflow.input, request.input)


def dag(*tasks: TaskWish) -> StartRequest:
    return dag_request("w-1", tasks, "default", TYPES, "default")


@given(payloads, st.sampled_from(TYPES), st.integers(0, 1_000))
def test_a_job_gives_back_its_payload(payload: Any, kind: str, retries: int) -> None:
    request = job_request(JobWish(type=kind, payload=payload, max_retries=retries), "blue", TYPES)

    assert job_payload(stored(request)) == payload
    assert (request.kind, request.namespace) == (RunKind.JOB, "blue")
    (task,) = request.workflow.tasks
    assert (task.executor, task.retry.max_retries) == (kind, retries)


def test_jobs_of_one_type_share_their_definition() -> None:
    one, other, unlike = (
        job_request(JobWish(type="compute", payload=place, max_retries=retries), "default", TYPES)
        for place, retries in ((1, 3), (2, 3), (3, 0))
    )

    assert one.workflow is other.workflow
    assert one.workflow != unlike.workflow


@given(
    st.lists(st.tuples(titles, payloads, st.sampled_from(TYPES)), min_size=1, max_size=6), titles
)
def test_steps_are_read_back_as_they_were_asked_for(
    given_steps: list[tuple[str, Any, str]], name: str
) -> None:
    steps = [StepWish(name=one, payload=payload, type=kind) for one, payload, kind in given_steps]

    request = steps_request(name, steps, "default", TYPES)

    assert read_steps(request.workflow, stored(request)) == steps
    assert (request.workflow.title or request.workflow.name) == name
    parents = [task.depends_on for task in request.workflow.tasks]
    assert parents == [(), *((task.id,) for task in request.workflow.tasks[:-1])]


@st.composite
def dags(draw: st.DrawFn) -> list[TaskWish]:
    names = draw(st.lists(titles, min_size=1, max_size=6, unique=True))
    return [
        TaskWish(
            id=name,
            type=draw(st.sampled_from(TYPES)),
            dependencies=tuple(parent for parent in names[:place] if draw(st.booleans())),
            payload=draw(payloads),
            compensation=draw(st.just(UNSET) | payloads),
        )
        for place, name in enumerate(names)
    ]


@given(dags())
def test_tasks_are_read_back_as_they_were_asked_for(tasks: list[TaskWish]) -> None:
    request = dag(*tasks)

    assert read_tasks(request.workflow, stored(request)) == tasks
    assert (request.kind, request.key) == (RunKind.DAG, "w-1")


@settings(max_examples=20)
@given(dags())
def test_payloads_that_are_too_much_for_the_input_stay_in_the_tasks(tasks: list[TaskWish]) -> None:
    bound, shapes.INLINE_BYTES = shapes.INLINE_BYTES, 0
    try:
        request = dag(*tasks)
    finally:
        shapes.INLINE_BYTES = bound

    assert "payloads" not in request.input
    assert read_tasks(request.workflow, stored(request)) == tasks


def test_a_task_without_a_type_has_the_default_one() -> None:
    request = dag(TaskWish(id="a"), TaskWish(id="b", type="compute"))

    assert [task.executor for task in request.workflow.tasks] == ["default", "compute"]


def test_dags_of_one_shape_share_their_definition() -> None:
    one, other = (dag(TaskWish(id="a", payload=place)) for place in (1, 2))

    assert one.workflow is other.workflow


def problems(error: pytest.ExceptionInfo[InvalidInput]) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in error.value.problems]


def test_an_unknown_type_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInput, match="use compute, default or flaky") as error:
        job_request(JobWish(type="compite"), "default", TYPES)

    assert problems(error) == [("UNKNOWN_TYPE", "type")]


def test_all_problems_of_steps_are_told_at_once() -> None:
    steps = [StepWish(name="", type="x"), StepWish(name="a", type="compute", max_retries=-1)]

    with pytest.raises(InvalidInput) as error:
        steps_request("n" * 257, steps, "default", TYPES)

    assert problems(error) == [
        ("BAD_NAME", "name"),
        ("BAD_NAME", "steps[0].name"),
        ("UNKNOWN_TYPE", "steps[0].type"),
        ("OUT_OF_RANGE", "steps[1].max_retries"),
    ]


def test_nothing_to_do_is_refused() -> None:
    with pytest.raises(InvalidInput) as error:
        steps_request("chain", [], "default", TYPES)
    assert problems(error) == [("EMPTY", "steps")]
    with pytest.raises(InvalidInput) as error:
        dag()
    assert problems(error) == [("EMPTY", "tasks")]


def test_a_circle_is_named() -> None:
    with pytest.raises(InvalidInput, match="a → b → a") as error:
        dag(TaskWish(id="a", dependencies=("b",)), TaskWish(id="b", dependencies=("a",)))

    assert {code for code, _ in problems(error)} == {"CYCLE"}


def test_edges_and_ids_that_make_no_sense_are_refused() -> None:
    tasks = [
        TaskWish(id="a", dependencies=("a", "none")),
        TaskWish(id="a"),
        TaskWish(id="b", type="x", max_retries=2_000),
    ]

    with pytest.raises(InvalidInput) as error:
        dag(*tasks)

    assert sorted(problems(error)) == [
        ("CYCLE", "tasks[0].dependencies[0]"),
        ("DUPLICATE_ID", "tasks[1].taskId"),
        ("OUT_OF_RANGE", "tasks[2].max_retries"),
        ("UNKNOWN_TASK", "tasks[0].dependencies[1]"),
        ("UNKNOWN_TYPE", "tasks[2].type"),
    ]


def test_more_tasks_than_a_workflow_may_have_are_refused() -> None:
    with pytest.raises(InvalidInput, match="100,000"):
        steps_request("chain", [StepWish(name="a", type="compute")] * 100_001, "default", TYPES)


def test_an_input_without_payloads_reads_as_null() -> None:
    request = steps_request(
        "chain", [StepWish(name="a", type="compute", payload=1)], "default", TYPES
    )

    (step,) = read_steps(request.workflow, b"{}")

    assert step == msgspec.structs.replace(step, payload=None)
