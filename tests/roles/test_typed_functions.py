"""Functions get values of the types they are annotated with, wherever they run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.roles.executor_stage import a_call, failure, run
from tests.roles.worker_stage import a_workshop
from tidemill.worker.executors.python import PythonExecutor
from tidemill.worker.library import load_library

SOURCE = """
from __future__ import annotations
import dataclasses, datetime, msgspec, pydantic
from pathlib import Path
from tidemill import task

@dataclasses.dataclass
class Order:
    id: str
    at: datetime.datetime

class Line(msgspec.Struct, rename="camel"):
    unit_price: float

class Person(pydantic.BaseModel):
    name: str
    lines: list[Line] = []

    model_config = {"arbitrary_types_allowed": True}

def kinds(order: Order, line: Line, person: Person, many: dict[str, list[Person]], path: Path):
    assert isinstance(order.at, datetime.datetime)
    return [type(each).__name__ for each in (order, line, person, many["a"][0], path)]

@task
async def decorated(order: Order) -> Order:
    return dataclasses.replace(order, id=order.id * 2)

def unfinished(order: Missing, line: Line):
    return [type(order).__name__, type(line).__name__]

def back() -> list:
    order = Order("a", datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC))
    return [order, Line(2.5), Person(name="x")]
"""
INPUTS: dict[str, Any] = {
    "order": {"id": "a", "at": "2030-01-01T00:00:00Z"},
    "line": {"unitPrice": 2},
    "person": {"name": "x"},
    "many": {"a": [{"name": "y"}]},
    "path": "a/b",
}

both = pytest.mark.parametrize("isolation", ["thread", "process"])


@pytest.fixture
def python(tmp_path: Path) -> Iterator[PythonExecutor]:
    path = tmp_path / "typed_under_test.py"
    path.write_text(SOURCE)
    before = list(sys.path)
    workshop = a_workshop(load_library([str(path)]))
    yield PythonExecutor(workshop)
    workshop.commands.close()
    sys.path[:] = before
    sys.modules.pop("typed_under_test", None)


def of(name: str, isolation: str = "thread") -> dict[str, Any]:
    return {"function": f"typed_under_test:{name}", "isolation": isolation}


@both
async def test_arguments_have_their_annotated_types(python: PythonExecutor, isolation: str) -> None:
    result = await run(python, a_call(of("kinds", isolation), INPUTS))

    # What JSON has no way to make, such as a Path, stays as it is.
    assert result == b'["Order","Line","Person","Person","str"]'


@both
async def test_an_argument_that_does_not_fit_is_final_and_named(
    python: PythonExecutor, isolation: str
) -> None:
    inputs = INPUTS | {"many": {"a": [{"name": "y"}, {}]}}

    kind, final, message = await failure(python, a_call(of("kinds", isolation), inputs))

    assert (kind, final) == ("InvalidInputs", True)
    assert message.startswith("inputs.many: [...][1]: 1 validation error for Person name")


@both
async def test_a_decorated_function_is_called_as_it_is(
    python: PythonExecutor, isolation: str
) -> None:
    result = await run(python, a_call(of("decorated", isolation), {"order": INPUTS["order"]}))

    assert b"aa" in result if isinstance(result, bytes) else result.id == "aa"


async def test_annotations_that_cannot_be_read_are_passed_over(python: PythonExecutor) -> None:
    inputs = {name: INPUTS[name] for name in ("order", "line")}

    assert await run(python, a_call(of("unfinished"), inputs)) == b'["dict","Line"]'


async def test_results_of_every_kind_are_json(python: PythonExecutor) -> None:
    result = await run(python, a_call(of("back")))

    assert result == (
        b'[{"id":"a","at":"2030-01-01T00:00:00Z"},{"unitPrice":2.5},{"name":"x","lines":[]}]'
    )
