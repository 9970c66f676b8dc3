"""The input of a run: defaults, and refusals that name the field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.domain.errors import InvalidInput
from tidemill.domain.inputs import encode_input, prepare_input

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "maxLength": 8},
        "amount": {"type": "integer", "minimum": 10, "default": 20},
        "address": {"$ref": "#/$defs/address"},
        "lines": {"type": "array", "items": {"properties": {"count": {"default": 1}}}},
        "size": {"enum": ["small", "large"]},
        "either": {"anyOf": [{"type": "object", "required": ["a"]}, {"minProperties": 2}]},
        "never": False,
    },
    "allOf": [{"properties": {"channel": {"default": "web"}}}],
    "required": ["order_id"],
    "unevaluatedProperties": False,
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"country": {"type": "string", "default": "SE"}},
            "additionalProperties": False,
        }
    },
}


def messages_of(schema: dict[str, Any], value: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        prepare_input(schema, value)
    return [str(problem) for problem in refused.value.problems]


def test_defaults_are_filled_in_on_every_level() -> None:
    given_input: dict[str, Any] = {"order_id": "7", "address": {}, "lines": [{}, {"count": 3}]}

    prepared = prepare_input(SCHEMA, given_input)

    assert prepared == {
        "order_id": "7",
        "amount": 20,
        "address": {"country": "SE"},
        "lines": [{"count": 1}, {"count": 3}],
        "channel": "web",
    }
    assert given_input == {"order_id": "7", "address": {}, "lines": [{}, {"count": 3}]}


def test_a_default_is_filled_in_itself() -> None:
    address = {"default": {}, "properties": {"country": {"default": "SE"}}}

    prepared = prepare_input({"properties": {"address": address}}, None)

    assert prepared == {"address": {"country": "SE"}}


def test_without_a_schema_any_object_will_do() -> None:
    assert prepare_input({}, None) == {}
    assert prepare_input({}, {"a": [1, None]}) == {"a": [1, None]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "input.order_id: is required"),
        ({"order_id": "7", "amount": 5}, "input.amount: 5 is less than the minimum of 10"),
        (
            {"order_id": 7},
            'input.order_id: must be a string, not 7: put it in quotes, like "7"',
        ),
        (
            {"order_id": "123456789"},
            "input.order_id: has 9 characters, at most 8 are allowed",
        ),
        (
            {"order_id": "7", "address": {"contry": "NO"}},
            'input.address.contry: is not a known field, did you mean "country"?',
        ),
        (
            {"order_id": "7", "amuont": 12},
            'input.amuont: is not a known field, did you mean "amount"?',
        ),
        ({"order_id": "7", "never": 1}, "input.never: is not allowed"),
        (
            {"order_id": "7", "size": "larg"},
            'input.size: must be "small" or "large", not "larg", did you mean "large"?',
        ),
        (
            {"order_id": "7", "either": {}},
            "input.either: {} is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        ([1], "input: must be an object, like {}, not [1]"),
        ({"a": float("nan")}, "input.a: is nan, which JSON cannot hold"),
    ],
)
def test_wrong_input_is_refused_naming_the_field(value: Any, message: str) -> None:
    assert messages_of(SCHEMA, value) == [message]


def test_a_large_input_is_refused() -> None:
    assert messages_of({}, {"x": "y" * 300_000}) == [
        (
            "input: has 300,008 bytes as JSON, at most 262,144 are allowed: "
            "keep large data elsewhere and pass its address"
        )
    ]


def test_every_problem_is_told_at_once() -> None:
    messages = messages_of(SCHEMA, {"amount": 5, "size": 3})

    assert sorted(messages) == [
        "input.amount: 5 is less than the minimum of 10",
        "input.order_id: is required",
        'input.size: must be "small" or "large", not 3',
    ]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"maxItems": 1}, [1, 2], "input.x: has 2 entries, at most 1 are allowed"),
        ({"uniqueItems": True}, [1, 1], "input.x: [1,1] has non-unique elements"),
        ({"minLength": 3}, "ab", "input.x: has 2 characters, at least 3 are needed"),
        ({"minItems": 2}, [1], "input.x: [1] has less than 2 items"),
        ({"type": "string", "format": "email"}, "x", 'input.x: "x" is not a "email"'),
        ({"type": ["integer", "null"]}, [], "input.x: must be null or a whole number, not a list"),
        ({"type": "boolean"}, {}, "input.x: must be true or false, not an object"),
        ({"pattern": "^a$"}, "b", 'input.x: "b" does not match "^a$"'),
        ({"const": "b" * 300}, "a", f'input.x: "{"b" * 199}…'),
        ({"additionalProperties": False}, {"a": 1}, "input.x: takes no fields"),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            {"a": 1},
            "input.x.a: is not a known field",
        ),
        (
            {"properties": {"z": {}}, "additionalProperties": False},
            {"alpha": 1},
            "input.x.alpha: is not a known field, known are z",
        ),
    ],
)
def test_other_keywords_are_told_in_plain_words(
    schema: dict[str, Any], value: Any, message: str
) -> None:
    assert messages_of({"properties": {"x": schema}}, {"x": value}) == [message]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (123_456_789, "must be a string"),
        ("hunter2", "has 7 characters, at least 12 are needed"),
        ("hunter2" * 3, "has 21 characters, at most 20 are allowed"),
        ("hunter2hunter2", "is refused, and not shown here: see what the field may be"),
    ],
)
def test_nothing_of_a_secret_is_shown(value: Any, message: str) -> None:
    secret = {"type": "string", "minLength": 12, "maxLength": 20, "pattern": "^[A-Z]*$"}
    schema = {"properties": {"password": {**secret, "writeOnly": True}}}

    assert messages_of(schema, {"password": value})[0] == f"input.password: {message}"
    assert "hunter2" not in str(messages_of(schema, {"password": value}))


def test_nothing_of_a_secret_is_shown_that_may_be_of_several_kinds() -> None:
    kinds = [{"type": "string", "minLength": 12}, {"type": "string", "pattern": "^$"}]
    schema = {"properties": {"password": {"anyOf": kinds, "writeOnly": True}}}

    [message] = messages_of(schema, {"password": "hunter2"})

    assert message.startswith("input.password: is refused")
    assert "hunter2" not in message


def test_of_many_problems_the_first_are_told() -> None:
    schema = {"properties": {"x": {"items": {"type": "string"}}}}

    messages = messages_of(schema, {"x": list(range(1_000))})

    assert len(messages) == 101
    assert messages[-1] == "and 900 more problems"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*SCHEMA["properties"], "x"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_no_input_makes_the_preparation_crash(value: Any) -> None:
    try:
        prepared = prepare_input(SCHEMA, value)
    except InvalidInput:
        return

    assert prepare_input(SCHEMA, prepared) == prepared


def test_what_is_no_json_at_all_is_refused_by_its_field() -> None:
    with pytest.raises(InvalidInput) as refused:
        prepare_input({}, {"thing": object()})

    assert refused.value.problems[0].path == "input.thing"


def test_equal_inputs_are_kept_as_equal_bytes() -> None:
    assert encode_input({}, {"b": 1, "a": 2}) == encode_input({}, {"a": 2, "b": 1})
