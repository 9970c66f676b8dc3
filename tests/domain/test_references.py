"""References: expressions with limits, the inputs of tasks, the output of runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.domain.errors import InvalidInput
from tidemill.domain.expressions import BadExpression, EvaluationFailed, compile_expression
from tidemill.domain.references import (
    evaluate_output,
    parents_of,
    referenced_tasks,
    resolve_inputs,
    secrets_read,
)
from tidemill.domain.workflow import InputSource, Source, TaskSpec


def test_each_kind_of_input_is_resolved() -> None:
    inputs: dict[str, InputSource] = {
        "constant": Source(const={"a": 1}),
        "plain": ["x"],
        "order": Source(input="order.id"),
        "whole": Source(result="fetch"),
        "part": Source(result="fetch", path="items[0].price"),
    }

    values = resolve_inputs(inputs, {"order": {"id": 7}}, {"fetch": {"items": [{"price": 3}]}})

    assert values == {
        "constant": {"a": 1},
        "plain": ["x"],
        "order": 7,
        "whole": {"items": [{"price": 3}]},
        "part": 3,
    }


def test_an_input_is_put_together_from_several_places() -> None:
    parts = Source(list=(Source(result="a"), Source(input="id"), 3, Source(list=())))
    inputs: dict[str, InputSource] = {
        "all": Source(object={"parts": parts, "b": Source(result="b")})
    }

    values = resolve_inputs(inputs, {"id": 7}, {"a": [1], "b": 2})

    assert values == {"all": {"parts": [[1], 7, 3, []], "b": 2}}


def test_a_part_that_fails_is_named_by_its_place() -> None:
    wrong = Source(object={"x": Source(list=(1, Source(input="abs(name)")))})

    with pytest.raises(InvalidInput, match=r"inputs\.all\.object\.x\.list\[1\]\.input: "):
        resolve_inputs({"all": wrong}, {"name": "a"}, {})


def test_every_result_inside_an_input_implies_the_dependency() -> None:
    inner = Source(object={"x": Source(result="c"), "y": Source(result="b")})
    task = TaskSpec(id="t", executor="noop", inputs={"i": Source(list=(Source(result="b"), inner))})

    assert parents_of(task) == ("b", "c")


def test_what_is_not_there_is_null() -> None:
    inputs = {
        "input": Source(input="a.b"),
        "result": Source(result="skipped"),
        "path": Source(result="skipped", path="a"),
    }

    assert resolve_inputs(inputs, {}, {}) == {"input": None, "result": None, "path": None}


def test_every_input_that_fails_is_named() -> None:
    inputs = {
        "good": Source(input="a"),
        "size": Source(result="fetch", path="length(@)"),
        "broken": Source(input="a."),
    }

    with pytest.raises(InvalidInput) as refused:
        resolve_inputs(inputs, {"a": 1}, {"fetch": 5})

    assert str(refused.value) == (
        "inputs.size.path: length(@): length() takes string or array or object, "
        "and was given number\n"
        "inputs.broken.input: is not a JMESPath expression: it ends too early"
    )


def test_the_output_is_an_expression_over_results_by_id() -> None:
    results = {"fetch-order": {"total": 5}, "pay": [1, 2]}

    output = evaluate_output('{total: "fetch-order".total, payments: length(pay)}', results)

    assert output == {"total": 5, "payments": 2}


def test_an_output_that_fails_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"^output: keys\(a\): keys\(\) takes object"):
        evaluate_output("keys(a)", {"a": 1})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", {"a"}),
        ("a.b.c | d", {"a"}),
        ('"a-b".c[0].d', {"a-b"}),
        ("@.a.b", {"a"}),
        ("@ | a", {"a"}),
        ("{x: a.b, y: [c, `1`]}", {"a", "c"}),
        ("a || b && !c", {"a", "b", "c"}),
        ("a == b", {"a", "b"}),
        ("items[?price > `5`].name", {"items"}),
        ("items[].name", {"items"}),
        ("items[*].name", {"items"}),
        ("sort_by(a, &b)", {"a"}),
        ("'text'", set()),
        ("[0]", set()),
        ("[0:2]", set()),
        ("@", None),
        ("@ | @", None),
        ("*.name", None),
        ("{x: a, y: keys(@)}", None),
    ],
)
def test_the_tasks_that_an_output_reads_are_known(
    expression: str, expected: set[str] | None
) -> None:
    assert referenced_tasks(expression) == expected


def test_a_broken_output_has_no_references() -> None:
    with pytest.raises(InvalidInput, match="output: is empty"):
        referenced_tasks("")


def test_reading_a_result_implies_the_dependency() -> None:
    task = TaskSpec(
        id="c",
        executor="noop",
        depends_on=("b", "a", "b"),
        inputs={"x": Source(result="d"), "y": Source(result="a"), "z": Source(const=1), "w": 5},
    )

    assert parents_of(task) == ("b", "a", "d")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (" ", "is not a JMESPath expression: it ends too early"),
        ("a[", "is not a JMESPath expression: it ends too early"),
        ("a]", "is not a JMESPath expression: unexpected ']' at character 2"),
        ("a = b", "is not a JMESPath expression: unknown token '=' at character 3"),
        ('"a', 'is not a JMESPath expression: unclosed " delimiter at character 1'),
        ("x" * 2_001, "has 2,001 characters, at most 2,000 are allowed"),
        ("!" * 900 + "a", "is nested too deeply, at most 48 levels are allowed"),
        ("a" + "|a" * 60, "is nested too deeply, at most 48 levels are allowed"),
        ("a[::0]", "has a slice with step 0, which never ends"),
        (
            "size.x || size(a)",
            "calls size() at character 11, which is not a function of JMESPath",
        ),
        ("length(a, b)", "calls length() with 2 arguments, it takes 1 argument"),
        ("join(a)", "calls join() with 1 argument, it takes 2 arguments"),
        ("merge()", "calls merge() with 0 arguments, it takes at least 1 argument"),
    ],
)
def test_a_bad_expression_says_what_is_wrong_and_where(expression: str, message: str) -> None:
    with pytest.raises(BadExpression) as refused:
        compile_expression(expression)

    assert str(refused.value) == message


GROWING = [
    ("[@, @] | " * 30 + "@", [1]),
    ("[@[], @[]][] | " * 30 + "@", [1]),
    ("join('', [@, @]) | " * 30 + "@", "x" * 100),
    ("{a: @, b: @} | " * 30 + "to_string(@)", 1),
]


@pytest.mark.parametrize(("expression", "data"), GROWING)
def test_an_expression_that_grows_without_bound_is_stopped(expression: str, data: Any) -> None:
    with pytest.raises(EvaluationFailed, match="takes too many steps"):
        compile_expression(expression).evaluate(data, steps_max=20_000)


def test_the_budget_of_steps_can_be_smaller() -> None:
    compiled = compile_expression("items[*].name")

    assert compiled.evaluate({"items": [{"name": "a"}]}, steps_max=5) == ["a"]
    with pytest.raises(EvaluationFailed):
        compiled.evaluate({"items": [{"name": "a"}] * 10}, steps_max=5)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("`NaN`", "its value holds nan, which JSON cannot hold"),
        ("to_number('inf')", "its value holds inf, which JSON cannot hold"),
        ("&a", "its value is an expression (&), which only functions can take"),
        ("`" + "[" * 200 + "]" * 200 + "`", "its value is nested too deeply"),
        ("max([`1`, 'a'])", "max() takes array of number or array of string, and was given string"),
        ("ceil(`1e999`)", "cannot be evaluated over this data: cannot convert float infinity to"),
    ],
)
def test_a_value_that_json_cannot_hold_is_refused(expression: str, message: str) -> None:
    with pytest.raises(EvaluationFailed) as refused:
        compile_expression(expression).evaluate({})

    assert str(refused.value).startswith(message)


def test_data_nested_beyond_the_stack_fails_cleanly() -> None:
    data: list[Any] = []
    for _ in range(100_000):
        data = [data]

    with pytest.raises(EvaluationFailed, match="nested too deeply"):
        compile_expression("@ == `[[]]` || to_string(@)").evaluate(data)


TOKENS = st.sampled_from(
    [
        *("a", "b", '"a-b"', "@", "*", "[]", "[0]", "[*]", "[?", "[::-1]", "]", "(", ")", "{", "}"),
        *(
            ".",
            ",",
            ":",
            "|",
            "||",
            "&&",
            "!",
            "&",
            "==",
            "<",
            ">",
            "`1`",
            "'x'",
            "[",
            " ",
            "-",
            "9",
        ),
        *("length(", "sort_by(", "map(", "to_string(", "to_number(", "join(", "sum(", "avg("),
    ]
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "a-b"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(TOKENS, max_size=12).map("".join) | st.text(max_size=20), DATA)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_no_expression_makes_the_evaluation_crash(expression: str, data: Any) -> None:
    with suppress(BadExpression, EvaluationFailed):
        compile_expression(expression).evaluate(data)


@settings(max_examples=200, deadline=None)
@given(st.lists(TOKENS, max_size=10).map("".join), st.dictionaries(st.sampled_from("ab"), DATA))
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_an_expression_reads_nothing_but_its_roots(
    expression: str, results: dict[str, Any]
) -> None:
    try:
        names = referenced_tasks(expression)
        whole = evaluate_output(expression, results)
    except InvalidInput:
        return

    if names is not None:
        part = {name: value for name, value in results.items() if name in names}
        assert evaluate_output(expression, part) == whole


def test_only_who_runs_a_task_finds_its_secrets() -> None:
    inputs: dict[str, InputSource] = {
        "login": Source(object={"user": "ada", "password": Source(secret="db")})
    }

    shown = resolve_inputs(inputs, {}, {})
    found = resolve_inputs(inputs, {}, {}, lambda name: f"value of {name}")

    assert shown == {"login": {"user": "ada", "password": "***"}}
    assert found == {"login": {"user": "ada", "password": "value of db"}}


def test_the_secrets_of_a_task_are_known_by_name() -> None:
    task = TaskSpec(
        id="a",
        executor="noop",
        inputs={
            "one": Source(secret="db"),
            "many": Source(list=(Source(secret="token"), Source(secret="db"), 3)),
        },
    )

    assert secrets_read(task) == ("db", "token")


@given(
    data=st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.dictionaries(st.sampled_from(["a", "b", "x-y"]), inner, max_size=3)
            | st.lists(inner, max_size=2)
        ),
        max_leaves=8,
    )
)
@pytest.mark.parametrize("path", ["a", "a.b", "a.b.a", '"x-y".a'])
def test_a_path_of_names_is_read_as_jmespath_reads_it(path: str, data: Any) -> None:
    compiled = compile_expression(path)

    assert compiled.fields is not None
    assert compiled.evaluate(data) == jmespath.search(path, data)


@pytest.mark.parametrize("expression", ["@", "a[0]", "a | b", "*.a", "a || b", "[a]", "length(a)"])
def test_anything_but_a_path_of_names_is_evaluated(expression: str) -> None:
    assert compile_expression(expression).fields is None
