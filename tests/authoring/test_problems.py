"""What is wrong with a workflow, told before anything runs: task, parameter and line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest

from tests.authoring import shop
from tidemill import secret, task, workflow
from tidemill.domain.errors import InvalidWorkflow


class Row(msgspec.Struct):
    """A part of a table."""

    name: str
    size: int


@task
def rows() -> list[Row]:
    """A list of objects."""
    return []


@task
def maybe() -> Row | None:
    """Something, or nothing."""
    return None


@task
def number(value: int) -> int:
    """Takes a number."""
    return value


@task
def anything(value: Any) -> Any:
    """Takes all, promises nothing."""
    return value


@task
def choose(colour: Literal["red", "green"], rows: list[Row]) -> dict[str, int]:
    """Takes one of two words."""
    return {}


def problems_of(body: Callable[[Any], Any]) -> list[str]:
    def flow(text: str):  # type: ignore[no-untyped-def]
        return body(text)

    with pytest.raises(InvalidWorkflow) as caught:
        _ = workflow(flow).definition
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


# Wrong on purpose: what mypy would say, Tidemill must say to those who do not use it.
CASES: list[tuple[Callable[[Any], Any], str]] = [
    (number, "number.value: takes int, and text is str"),
    (lambda text: number(rows()), "number.value: takes int, and rows is list[Row]"),  # type: ignore[arg-type]
    (lambda text: number(rows()[0].name), "number.value: takes int, and rows[0].name is str"),  # type: ignore[arg-type]
    (lambda text: number(maybe()), "number.value: takes int, and maybe is Row | None"),  # type: ignore[arg-type]
    (
        lambda text: number("3"),  # type: ignore[arg-type]
        "number.value: takes int, and '3' is none: Expected `int`, got `str`",
    ),
    (lambda text: number([number(1)]), "number_2.value: takes int, and a list is given"),  # type: ignore[arg-type]
    (lambda text: number(), "number: the argument 'value' is missing"),  # type: ignore[call-arg]
    (lambda text: number(1, 2), "number: takes 1 positional arguments, 2 are given"),  # type: ignore[call-arg]
    (
        lambda text: number(valu=1, value=1),  # type: ignore[call-arg]
        "number: has no parameter 'valu', did you mean \"value\"?",
    ),
    (
        lambda text: number(anything(object())),
        "anything.value: JSON cannot hold a value of type object",
    ),
    (lambda text: rows()[0].nam, "rows[0]: Row has no field 'nam', did you mean \"name\"?"),  # type: ignore[attr-defined]
    (lambda text: rows()["name"], "rows: is list[Row], which has no item 'name'"),  # type: ignore[call-overload]
    (lambda text: rows()[0]["name"], "rows[0]: is Row: write .name, not ['name']"),  # type: ignore[index]
    (
        lambda text: choose("red", rows()).total,  # type: ignore[attr-defined]
        'choose: is dict[str, int]: write ["total"], not .total',
    ),
    (lambda text: text.upper, "text: is str, which has no field 'upper'"),
    (
        lambda text: choose("blue", rows()),  # type: ignore[arg-type]
        "choose.colour: takes Literal['red', 'green'], and 'blue' is none: Invalid enum value",
    ),
    (
        lambda text: choose("red", [maybe(), 3]),  # type: ignore[list-item]
        "choose.rows: takes Row, and maybe is Row | None",
    ),
    (
        lambda text: shop.pay(shop.write("you", [])),  # type: ignore[arg-type]
        "pay.order: takes Order, and write is Letter",
    ),
    (
        lambda text: number.options(id="x")(number.options(id="x")(1)),
        "x: 'x' is the id of an earlier call",
    ),
    (
        lambda text: number.options(trigger="sometimes")(1),
        "number.trigger: there is no trigger 'sometimes'",
    ),
    (lambda text: number.after(3)(1), "number: after() takes what tasks of this workflow return"),
    (lambda text: [number(1), text][1], "return: text is no result: return what tasks return"),
    (
        lambda text: [number(1), secret("x")][1],
        "return: secret x is no result: return what tasks return",
    ),
    (lambda text: anything({number(1)}), "anything.value: a set has no order: pass a list"),
    (lambda text: None, "flow: calls no task"),
]


@pytest.mark.parametrize(("body", "message"), CASES, ids=[message for _, message in CASES])
def test_a_mistake_is_told(body: Callable[[Any], Any], message: str) -> None:
    assert [found for found in problems_of(body) if found.startswith(message)], problems_of(body)


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (bool, "it cannot be tested (if, while, and, or, not)"),
        (list, "it cannot be iterated or unpacked"),
        (len, "it has no length"),
        (str, "it cannot be made into text"),
        (lambda node: f"{node}", "it cannot be made into text"),
        (lambda node: node + 1, "it cannot be computed with"),
        (lambda node: 1 - node, "it cannot be computed with"),
        (lambda node: node == 1, "it cannot be compared"),
        (lambda node: node < 1, "it cannot be compared"),
        (lambda node: 1 in node, "nothing can be looked up in it"),
        (lambda node: node(), "it cannot be called"),
        (lambda node: node.__await__(), "it is not awaited: call an async task here without await"),
        (lambda node: setattr(node, "x", 1), "nothing can be set in it"),
    ],
)
def test_a_value_that_is_not_there_yet_says_so(use: Callable[[Any], Any], what: str) -> None:
    expected = (
        f"number: has no value while the workflow is described, so {what}; "
        "pass it to a task and do it there"
    )

    assert problems_of(lambda text: use(number(1))) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        lambda text: number(anything(text)),
        lambda text: number(anything(text).deep.er["x"]),
        lambda text: number(True and 3),
        lambda text: anything(maybe().size),  # type: ignore[union-attr]
        lambda text: shop.pay(order=anything(1)),
        lambda text: shop.pay({"id": "x", "total": 1}),  # type: ignore[arg-type]
        lambda text: shop.pay({"id": text, "total": number(1)}),  # type: ignore[arg-type]
        lambda text: choose(text, rows()),
        lambda text: choose("red", [rows()[0], {"name": text, "size": 1}]),  # type: ignore[list-item]
    ],
)
def test_what_may_fit_is_let_through(body: Callable[[Any], Any]) -> None:
    @workflow
    def flow(text: str) -> Any:
        return body(text)

    assert flow.definition.tasks


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    @workflow
    def flow(text: str) -> None:
        number(text)  # type: ignore[arg-type]
        number()  # type: ignore[call-arg]

    first = flow.function.__code__.co_firstlineno + 2
    with pytest.raises(InvalidWorkflow) as caught:
        _ = flow.definition

    assert [problem.line for problem in caught.value.problems] == [first, first + 1]
    assert caught.value.source == __file__


def test_a_result_of_another_workflow_is_refused() -> None:
    kept: list[Any] = []

    @workflow
    def one() -> None:
        kept.append(rows())

    _ = one.definition

    assert problems_of(lambda text: anything(kept[0])) == [
        "anything.value: rows belongs to another workflow: call its task here"
    ]


def test_the_return_value_is_checked_too() -> None:
    @workflow
    def flow() -> int:
        return rows()  # type: ignore[return-value]

    with pytest.raises(InvalidWorkflow, match=r"return: takes int, and rows is list\[Row\]"):
        _ = flow.definition


def test_an_error_of_the_users_code_stays_what_it_is() -> None:
    @workflow
    def flow() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        _ = flow.definition


def test_a_traceback_names_the_file() -> None:
    @workflow
    def flow() -> int:
        return number("x")  # type: ignore[arg-type]

    with pytest.raises(InvalidWorkflow) as refused:
        _ = flow.definition

    assert refused.value.__notes__ == [f"in {__file__}"]
