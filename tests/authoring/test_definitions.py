"""From decorated functions to definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.authoring import shop
from tidemill import RetryPolicy, Source, Timeouts, TriggerRule, secret, task, workflow
from tidemill.domain.workflow import TaskSpec, Workflow


@task
def one() -> dict[str, list[int]]:
    """Gives something to take apart."""
    return {"rows": [1, 2]}


@task
def two(value: Any = None, **more: Any) -> Any:
    """Takes anything."""
    return value


def spec(definition: Workflow, task_id: str) -> TaskSpec:
    return next(each for each in definition.tasks if each.id == task_id)


def inputs_of(flow: Any, task_id: str = "two") -> Any:
    return spec(flow.definition, task_id).inputs


def test_a_task_stays_a_function() -> None:
    assert shop.fetch("a") == shop.Order(id="a", total=12.5)
    assert shop.fetch.function("a") == shop.fetch("a")
    assert shop.fetch.name == "tests.authoring.shop:fetch"


async def test_an_async_task_stays_a_coroutine_function() -> None:
    receipt: Any = shop.pay(shop.fetch("a"))

    assert (await receipt).paid


def test_calls_become_tasks_in_their_order() -> None:
    ids = [each.id for each in shop.orders.definition.tasks]

    assert ids == ["fetch", "pay", "fetch_2", "pay_2", "write", "send"]


def test_options_of_the_decorator_are_in_the_definition() -> None:
    definition = shop.orders.definition

    pay = spec(definition, "pay")
    assert (pay.queue, pay.labels, pay.priority) == ("money", {"zone": "eu"}, 7)
    assert pay.retry == RetryPolicy(max_retries=0)
    assert spec(definition, "fetch").timeouts == Timeouts(attempt_seconds=30)
    assert (definition.labels, definition.timeout_seconds) == ({"team": "shop"}, 3600)
    assert definition.description == "Pay two orders and send one letter."


def test_arguments_say_where_they_come_from() -> None:
    @workflow
    def flow(given: dict[str, Any]) -> None:
        two(given["deep"]["er"], constant={"a": 1}, text="x", rows=one()["rows"][0])

    assert inputs_of(flow) == {
        "value": Source(input="given.deep.er"),
        "constant": Source(const={"a": 1}),
        "text": "x",
        "rows": Source(result="one", path="rows[0]"),
    }


def test_many_results_go_into_one_argument() -> None:
    @workflow
    def flow(name: str) -> None:
        two([one(), one()["rows"], name, 3], by_name={"a": one(), "b": [name]})

    assert inputs_of(flow) == {
        "value": Source(
            list=(
                Source(result="one"),
                Source(result="one_2", path="rows"),
                Source(input="name"),
                3,
            )
        ),
        "by_name": Source(
            object={"a": Source(result="one_3"), "b": Source(list=(Source(input="name"),))}
        ),
    }


def test_fields_are_called_as_json_has_them() -> None:
    @workflow
    def flow() -> None:
        receipt = shop.pay(shop.fetch("a"))
        two(receipt.order_id, total=shop.fetch("b").total)

    assert inputs_of(flow) == {
        "value": Source(result="pay", path="orderId"),
        "total": Source(result="fetch_2", path="total"),
    }


def test_an_object_may_hold_results() -> None:
    @dataclass
    class Pair:
        left: Any
        right: int

    @workflow
    def flow() -> None:
        two(Pair(left=one(), right=2))

    assert inputs_of(flow) == {"value": Source(object={"left": Source(result="one"), "right": 2})}


def test_a_secret_is_named_and_never_read() -> None:
    @workflow
    def flow() -> None:
        two(secret("api-key"))

    assert inputs_of(flow) == {"value": Source(secret="api-key")}


def test_order_without_data() -> None:
    @workflow
    def flow() -> None:
        first = one()
        two.after(first, one())(3)

    assert spec(flow.definition, "two").depends_on == ("one", "one_2")


def test_options_of_a_call_win_and_the_others_stay() -> None:
    plain = task(retries=2, queue="q")(two.function)

    @workflow
    def flow() -> None:
        plain.options(retry=RetryPolicy(max_retries=9), id="mine", trigger="all_done")(1)

    mine = spec(flow.definition, "mine")
    assert (mine.retry.max_retries, mine.queue, mine.trigger) == (9, "q", TriggerRule.ALL_DONE)


def test_a_workflow_sets_the_retries_of_tasks_that_do_not() -> None:
    @workflow(retries=0)
    def flow() -> None:
        two(1)
        two.options(retries=4)(1)

    assert [each.retry.max_retries for each in flow.definition.tasks] == [0, 4]


def test_a_workflow_called_in_another_one_becomes_part_of_it() -> None:
    @workflow
    def inner(value: int) -> Any:
        return two(value)

    @workflow
    def outer(value: int) -> Any:
        return two(inner(value))

    assert [each.id for each in outer.definition.tasks] == ["two", "two_2"]
    assert inputs_of(outer, "two_2") == {"value": Source(result="two")}


@pytest.mark.parametrize(
    ("returned", "output"),
    [
        (one, "one"),
        (lambda: one()["rows"][-1], "one.rows[-1]"),
        (lambda: {"a": one(), "b-c": [one(), 1]}, '{a: one, "b-c": [one_2, `1`]}'),
        (lambda: two.options(id="a.b")(1), '"a.b"'),
        (lambda: {"tick": one(), "x": "a`b"}, '{tick: one, x: `"a\\`b"`}'),
        (lambda: one() and None if False else None, None),
    ],
)
def test_what_is_returned_is_the_output(returned: Any, output: str | None) -> None:
    @workflow
    def flow() -> Any:
        two.options(id="other")(1)
        return returned()

    assert flow.definition.output == output


def test_parameters_are_the_input() -> None:
    schema = shop.orders.definition.input

    assert schema["required"] == ["first"]
    assert schema["properties"]["first"] == {"type": "string"}
    assert schema["properties"]["second"] == {"type": "string", "default": "b"}
    assert schema["properties"]["address"]["default"] is None
    assert schema["$defs"]["Address"]["required"] == ["number", "street"]
    assert schema["additionalProperties"] is False


def test_models_of_pydantic_are_input_too() -> None:
    @workflow
    def flow(letter: shop.Letter, more: list[shop.Letter]) -> None:
        shop.send(letter, {"street": "Quay", "number": 1})
        two(more)

    schema = flow.definition.input
    assert schema["properties"]["letter"]["properties"]["to"]["type"] == "string"
    assert schema["properties"]["more"]["type"] == "array"


def test_the_definition_is_made_once() -> None:
    calls: list[int] = []

    @workflow
    def flow() -> None:
        calls.append(1)
        one()

    assert flow.definition is flow.definition
    assert calls == [1]


@pytest.mark.parametrize(
    ("decorate", "message"),
    [
        (  # wrong on purpose
            lambda: task(retrys=3)(lambda: 1),  # type: ignore[call-overload]
            "there is no option 'retrys', did you mean",
        ),
        (lambda: task(retry=RetryPolicy(), retries=3)(two.function), "give retry or retries"),
        (lambda: task(lambda x: x), "give @task"),
        (lambda: task(name="x")(lambda *x: x), "cannot be passed by name"),
        (
            lambda: workflow(nam="x")(two.function),  # type: ignore[call-overload]
            "there is no option 'nam', did you mean",
        ),
        (lambda: workflow(shop.pay.function), "write def, not async def"),
        (lambda: workflow(two.function), "cannot be a field of input"),
    ],
)
def test_a_wrong_decoration_is_refused_at_once(decorate: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        decorate()
