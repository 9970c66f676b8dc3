"""Definitions as YAML, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.authoring import shop
from tidemill import task, workflow
from tidemill.authoring.printing import to_plain, to_yaml
from tidemill.authoring.python_printing import to_python
from tidemill.domain.validation import check_workflow
from tidemill.domain.workflow import Workflow
from tidemill.sdk.documents import DocumentBuilder
from tidemill.sdk.files import load_file
from tidemill.sdk.yaml_events import yaml_events

EXAMPLES = Path(__file__).parents[2] / "examples"

WORDS = st.sampled_from(
    ["yes", "null", "1e5", "0x10", "12:30", "2024-01-31", "<<", "~", "- a", "a: b"]
)
TEXTS = WORDS | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@task
def take(value: Any, other: Any = None) -> Any:
    """Takes anything."""
    return value


def read(text: str) -> Workflow:
    value = DocumentBuilder().build(yaml_events(text)).value
    value.pop("imports", None)
    return check_workflow(value)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=4), retries=st.integers(0, 9), text=TEXTS)
def test_what_is_printed_reads_back_the_same(values: list[Any], retries: int, text: str) -> None:
    @workflow(description=text, retries=retries)
    def flow(first: str = text) -> Any:
        results = [take(value, first) for value in values]
        return {"all": take([*results, {"last": results[-1]}]), "constant": text}

    assert read(to_yaml(flow.definition)) == flow.definition


def test_only_what_is_unusual_is_printed() -> None:
    plain = to_plain(shop.orders.definition)

    assert plain["tasks"][0] == {
        "id": "fetch",
        "executor": "python",
        "params": {"function": "tests.authoring.shop:fetch"},
        "inputs": {"order_id": {"input": "first"}},
        "retry": {"max_retries": 5},
        "timeouts": {"attempt_seconds": 30},
    }


def test_printed_yaml_is_a_workflow_file(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(to_yaml(shop.orders.definition, ("tests.authoring.shop",)))

    loaded = load_file(file)

    assert loaded.workflow == shop.orders.definition
    assert loaded.imports == ("tests.authoring.shop",)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_reads_back_the_same(file: Path) -> None:
    workflow = load_file(file).workflow

    assert read(to_yaml(workflow)) == workflow


def test_the_text_is_meant_for_people() -> None:
    @workflow
    def small(name: str) -> Any:
        return take(name, [take(1), take(name)["x"]])

    assert to_yaml(small.definition).partition("tasks:\n")[2] == (
        "  - id: take\n"
        "    executor: python\n"
        "    params: {function: 'tests.authoring.test_printing:take'}\n"
        "    inputs: {value: 1}\n"
        "  - id: take_2\n"
        "    executor: python\n"
        "    params: {function: 'tests.authoring.test_printing:take'}\n"
        "    inputs:\n"
        "      value: {input: name}\n"
        "  - id: take_3\n"
        "    executor: python\n"
        "    params: {function: 'tests.authoring.test_printing:take'}\n"
        "    inputs:\n"
        "      value: {input: name}\n"
        "      other:\n"
        "        list:\n"
        "          - {result: take}\n"
        "          - {result: take_2, path: x}\n"
        "output: take_3\n"
    )


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_is_the_same_as_python(file: Path) -> None:
    workflow = load_file(file).workflow

    assert _executed(to_python(workflow)) == workflow


@settings(max_examples=30, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=4), text=TEXTS)
def test_python_that_is_printed_is_the_same_definition(values: list[Any], text: str) -> None:
    @workflow(description=text)
    def flow(first: str = text) -> Any:
        return take.options(trigger="all_done")([take(values), first], {"deep": [take(1)]})

    assert _executed(to_python(flow.definition)) == flow.definition


def _executed(code: str) -> Any:
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["workflow"]
