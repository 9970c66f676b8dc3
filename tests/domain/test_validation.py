"""What `check_workflow` accepts and refuses, in the words that a person sees."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.malformed import ORDER, REFUSED, Refused, a_definition, a_task
from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.domain.validation import check_workflow
from tidemill.domain.workflow import Source, TaskSpec, TriggerRule, Workflow


def problems_of(definition: Any) -> tuple[Problem, ...]:
    with pytest.raises(InvalidWorkflow) as refused:
        check_workflow(definition)
    return refused.value.problems


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.message[:60])
def test_a_malformed_definition_is_refused_in_words_that_help(case: Refused) -> None:
    (problem,) = problems_of(case.definition)

    assert str(problem) == case.message
    assert problem.code == case.code


def test_every_problem_is_told_at_once() -> None:
    definition = a_definition(
        a_task("a", depends_on=["c", "x"], priority="high"),
        a_task("b", depends_on=["a", "b"]),
        a_task("c", depends_on=["b"], inputs={"x": {"input": "a."}}),
        a_task("c", params={"x": float("inf")}),
        output="{x: one, y: two}",
        extra=1,
    )

    codes = [problem.code for problem in problems_of(definition)]

    assert sorted(codes) == [
        *("BAD_EXPRESSION", "BAD_NUMBER", "CYCLE", "DUPLICATE_ID", "SELF_LOOP", "UNKNOWN_FIELD"),
        *("UNKNOWN_TASK", "UNKNOWN_TASK", "UNKNOWN_TASK", "WRONG_TYPE"),
    ]


def test_a_reference_into_a_broken_place_is_told_once() -> None:
    definition = a_definition(a_task(depends_on=["é"], inputs={"x": {"result": "é"}}))

    assert [problem.code for problem in problems_of(definition)] == ["BAD_NAME", "BAD_NAME"]


def test_problems_beyond_the_bound_are_counted() -> None:
    definition = a_definition(*(a_task(f"t{n}", depends_on=[f"x{n}"], y=1) for n in range(100)))

    *first, last = problems_of(definition)

    assert len(first) == 100
    assert str(last) == "and 100 more problems"
    assert last.code == "MORE_PROBLEMS"


def test_a_long_cycle_is_shortened() -> None:
    names = [f"t{n}" for n in range(10_000)]
    tasks = [a_task(name, depends_on=[names[n - 1]]) for n, name in enumerate(names)]

    (problem,) = problems_of(a_definition(*tasks))

    assert problem.message == (
        "tasks wait in a circle, each for the next one: t0 → t9999 → t9998 → t9997 → t9996 → "
        "t9995 → … 9,989 more … → t5 → t4 → t3 → t2 → t1 → t0"
    )


def test_a_chain_of_ten_thousand_is_valid() -> None:
    tasks = [a_task("t0")]
    tasks += [a_task(f"t{n}", inputs={"x": {"result": f"t{n - 1}"}}) for n in range(1, 10_000)]

    workflow = check_workflow(a_definition(*tasks))

    assert len(workflow.tasks) == 10_000


def test_a_value_that_holds_itself_is_refused() -> None:
    params: dict[str, Any] = {}
    params["again"] = params

    (problem,) = problems_of(a_definition(a_task(params=params)))

    assert problem.code == "TOO_DEEP"


def test_a_value_that_doubles_on_every_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.domain.json_values.JSON_PARTS_MAX", 1_000)
    value: list[Any] = []
    for _ in range(40):
        value = [value, value]

    (problem,) = problems_of(a_definition(a_task(params={"x": value})))

    assert str(problem) == "has more than 1,000 parts, split it"


def test_a_valid_definition_becomes_a_value() -> None:
    definition = a_definition(
        a_task("fetch", inputs={"id": {"input": "order_id"}, "now": True, "all": {"input": "@"}}),
        a_task("pay", inputs={"order": {"result": "fetch", "path": "order"}}, trigger="all_done"),
        input=ORDER,
        output="pay.receipt",
    )

    workflow = check_workflow(definition)

    assert workflow.tasks[0].inputs == {
        "id": Source(input="order_id"),
        "now": True,
        "all": Source(input="@"),
    }
    assert workflow.tasks[1].trigger is TriggerRule.ALL_DONE


@pytest.mark.parametrize(
    "opening",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "string"}},
        {"patternProperties": {"^x": {}}},
        {"anyOf": [{"required": ["extra"]}, {}]},
    ],
)
def test_an_open_input_schema_allows_any_reference(opening: dict[str, Any]) -> None:
    definition = a_definition(a_task(inputs={"x": {"input": "extra"}}), input=ORDER | opening)

    assert check_workflow(definition).input == ORDER | opening


def test_a_required_input_may_have_no_default() -> None:
    schema = {"properties": {"a": {"default": 1}, "b": {}}, "required": ["b"]}

    assert check_workflow(a_definition(input=schema)).input == schema


def test_a_broken_input_schema_does_not_hide_other_problems() -> None:
    definition = a_definition(
        a_task(inputs={"x": {"input": "y"}, "z": 5}, depends_on=[5]), input=[], output=5
    )

    paths = {problem.path for problem in problems_of(definition)}

    assert paths == {"input", "output", "tasks[0].depends_on[0]"}


def test_a_schema_that_grows_too_large_is_refused() -> None:
    definitions: dict[str, Any] = {"a0": {"type": "string"}}
    for n in range(1, 20):
        reference = {"$ref": f"#/$defs/a{n - 1}"}
        definitions[f"a{n}"] = {"allOf": [reference, reference]}

    (problem,) = problems_of(a_definition(input={"$defs": definitions}))

    assert str(problem) == "input: is too large a schema once its references are written out"


def test_a_workflow_made_in_python_is_checked_too() -> None:
    good = Workflow(
        name="w", tasks=(TaskSpec(id="a", executor="noop", inputs={"x": Source(const=1)}),)
    )
    bad = Workflow(name="w", tasks=(TaskSpec(id="a", executor="noop", depends_on=("b",)),))

    assert check_workflow(good) == good
    assert [problem.code for problem in problems_of(bad)] == ["UNKNOWN_TASK"]


def test_a_workflow_made_in_python_with_foreign_objects_is_refused() -> None:
    workflow = Workflow(
        name="w", tasks=(TaskSpec(id="a", executor="noop", params={"x": object()}),)
    )

    (problem,) = problems_of(workflow)

    assert problem.code == "NOT_JSON"
    assert "object" in problem.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = [
    *("id", "executor", "params", "depends_on", "inputs", "retry", "timeouts", "queue", "labels"),
    *("priority", "trigger", "description", "name", "tasks", "input", "output", "const", "result"),
    *("path", "properties", "$ref", "default", "type", "max_retries", "jitter"),
]
WORDS = st.sampled_from(
    ["a", "b", "a.b", "noop", "@", "all_done", "full", "object", "#/properties"]
)
WORKFLOW_LIKE = st.recursive(
    JSON | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=30,
)


def check_outcome(definition: Any) -> None:
    with suppress(InvalidWorkflow):
        assert isinstance(check_workflow(definition), Workflow)


@settings(max_examples=150, deadline=None)
@given(JSON | WORKFLOW_LIKE)
def test_no_json_makes_the_check_crash(definition: Any) -> None:
    check_outcome(definition)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(FIELDS), WORKFLOW_LIKE, max_size=5), max_size=3),
    WORKFLOW_LIKE,
)
def test_no_task_makes_the_check_crash(tasks: list[dict[str, Any]], schema: Any) -> None:
    named = [{"id": "a", "executor": "noop"} | task for task in tasks]

    check_outcome({"name": "w", "tasks": named, "input": schema})
