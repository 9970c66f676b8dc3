"""What user code returns and raises, as the scheduler gets it."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.roles.worker_stage import Doing, a_token, an_assignment
from tidemill.domain.events import Failed, Succeeded
from tidemill.domain.masking import Masking
from tidemill.sdk.context import Context, FakeVoice, FinalError, RetryLater
from tidemill.worker.execute import execute
from tidemill.worker.executor import Call, Executor
from tidemill.worker.failures import TRACEBACK_CHARACTERS_MAX, TaskFailure
from tidemill.worker.results import encode_result

LIMIT = 256 * 1024


@dataclass
class Order:
    number: int
    at: datetime


class Line(msgspec.Struct):
    price: float


class Model:
    """Looks like a model of pydantic."""

    def model_dump(self, mode: str) -> dict[str, str]:
        return {"mode": mode}


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, None),
        ({"a": [1, 2.5, None]}, b'{"a":[1,2.5,null]}'),
        (Order(7, datetime(2026, 1, 1, tzinfo=UTC)), b'{"number":7,"at":"2026-01-01T00:00:00Z"}'),
        ([Line(1.5)], b'[{"price":1.5}]'),
        (Model(), b'{"mode":"json"}'),
        ({"x": "[" * 500}, b'{"x":"' + b"[" * 500 + b'"}'),
        (nested(64), b"[" * 64 + b"null" + b"]" * 64),
    ],
)
def test_results_are_written_as_json(value: Any, encoded: bytes | None) -> None:
    assert encode_result(value, LIMIT) == encoded


HOSTILE: dict[str, Any] = {
    "not a number": math.nan,
    "infinity": {"deep": [1, {"er": math.inf}], "none": None},
    "infinity in a struct": [Line(-math.inf)],
    "surrogate": "\ud800",
    "surrogate as a key": {"\udfff": 1},
    "cycle": cycle(),
    "deep": nested(65),
    "deeper": nested(5_000),
    "object": object(),
    "odd key": {(1, 2): 3},
    "function": lambda: 1,
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_what_json_cannot_hold_is_a_typed_final_failure(value: Any) -> None:
    with pytest.raises(TaskFailure) as caught:
        encode_result(value, LIMIT)

    assert (caught.value.kind, caught.value.final) == ("ResultNotSerializable", True)


PLACES: dict[str, tuple[Any, str]] = {
    "object": ({"items": [1, {"when": object()}]}, "$.items[1].when is of type object; return"),
    "in a struct": ([Line(object())], "$[0].price is of type object; return"),  # type: ignore[arg-type]
    "in a dataclass": ({"a b": Order(1, {1j})}, '$["a b"].at[0] is of type complex; return'),  # type: ignore[arg-type]
    "odd key": ({"x": [{(1, 2): 3}]}, "$.x[0] has keys of type tuple; keys must be text"),
    "surrogate": (["fine", "\ud800"], "$[1] holds text that is not valid Unicode"),
    "infinity": ({"a": [math.inf]}, "$.a[0] is inf, a number that JSON does not have"),
}


@pytest.mark.parametrize(("value", "words"), PLACES.values(), ids=PLACES)
def test_what_json_cannot_hold_is_named_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(TaskFailure) as caught:
        encode_result(value, LIMIT)

    assert str(caught.value).startswith(f"the result cannot be written as JSON: {words}")
    assert caught.value.traceback == ""


def test_a_model_that_raises_while_it_is_written_shows_its_traceback() -> None:
    class Broken:
        def model_dump(self, mode: str) -> None:
            raise ValueError("half filled")

    with pytest.raises(TaskFailure, match=r"\$\.order: ValueError: half filled") as caught:
        encode_result({"order": Broken()}, LIMIT)

    assert "in model_dump" in caught.value.traceback
    assert caught.value.traceback.endswith("$.order: ValueError: half filled\n")


@pytest.mark.parametrize(
    "value",
    ["x" * 300 * 1024, {"a": ["y" * 50_000_000]}, list(range(200_000)), [Line(1.0)] * 50_000],
    ids=["text", "50 MB", "list", "structs"],
)
def test_a_result_beyond_the_limit_says_its_size_and_the_limit(value: Any) -> None:
    with pytest.raises(TaskFailure, match=r"takes (more than )?\d+ bytes as JSON, 262144 is the"):
        encode_result(value, LIMIT)


def test_a_result_at_the_limit_passes() -> None:
    assert len(encode_result("x" * 98, 100) or b"") == 100


async def run(doing: Executor | None, **fields: Any) -> Succeeded | Failed:
    context = Context(token=a_token(), workflow="w", task="t", attempt=1, voice=FakeVoice())
    executors = {"do": doing} if doing else {}
    assignment = an_assignment(**fields)
    return await asyncio.create_task(execute(assignment, executors, context, LIMIT, Masking()))


async def raising(error: BaseException) -> Failed:
    async def fail(call: Call) -> None:
        raise error

    report = await run(Doing(fail))
    assert isinstance(report, Failed)
    return report


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), BaseException("odd")])
async def test_whatever_user_code_raises_is_a_failed_attempt(error: BaseException) -> None:
    report = await raising(error)

    assert (report.error.type, report.final) == (type(error).__name__, False)


async def test_a_final_error_is_final() -> None:
    assert (await raising(FinalError("no such order"))).final


@pytest.mark.parametrize(
    ("wish", "seconds"), [(12, 12), (-1, 0), (math.inf, 3_600), (math.nan, None), (10**400, None)]
)
async def test_patience_is_passed_on_as_far_as_it_makes_sense(
    wish: float, seconds: float | None
) -> None:
    error = RetryLater(1)
    error.seconds = wish

    assert (await raising(error)).retry_after_seconds == seconds


async def test_an_error_that_cannot_be_printed_is_still_reported() -> None:
    class Evil(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    report = await raising(Evil())

    assert (report.error.type, report.error.message) == (
        "Evil",
        "the message cannot be shown: RuntimeError",
    )


async def test_text_that_no_store_can_hold_is_mended() -> None:
    report = await raising(ValueError("a\0b\ud800c"))

    assert report.error.message == "a\ufffdb?c"
    report.error.traceback.encode()


async def test_a_traceback_shows_the_users_frames_and_causes_only() -> None:
    def inner() -> None:
        raise KeyError("missing")

    async def outer(call: Call) -> None:
        try:
            inner()
        except KeyError as error:
            raise ValueError("bad order") from error

    report = await run(Doing(outer))

    assert isinstance(report, Failed)
    trace = report.error.traceback
    assert "in inner" in trace
    assert "direct cause" in trace
    assert "tidemill/worker" not in trace


async def test_a_long_error_is_shortened() -> None:
    report = await raising(ValueError("x" * 1_000_000))

    assert len(report.error.message) < 10_000
    assert len(report.error.traceback) < TRACEBACK_CHARACTERS_MAX + 100


async def test_inputs_come_from_constants_the_run_and_parents() -> None:
    async def show(call: Call) -> Any:
        return call.inputs

    report = await run(
        Doing(show),
        inputs=b'{"a":1,"b":{"input":"order.id"},"c":{"result":"fetch","path":"total"}}',
        run_input=b'{"order":{"id":7}}',
        results={"fetch": b'{"total":9}'},
    )

    assert report == Succeeded(1, b'{"a":1,"b":7,"c":9}')


async def test_an_input_that_does_not_resolve_is_final_and_names_it() -> None:
    report = await run(
        Doing(lambda call: asyncio.sleep(0)),
        inputs=b'{"total":{"input":"sum(order)"}}',
        run_input=b'{"order":"seven"}',
    )

    assert isinstance(report, Failed)
    assert (report.error.type, report.final) == ("InvalidInput", True)
    assert "inputs.total" in report.error.message


async def test_the_output_of_a_run_is_evaluated_by_the_worker_itself() -> None:
    report = await run(
        None,
        executor="$output",
        params=b'{"expression":"pay.amount"}',
        results={"pay": b'{"amount":3}'},
    )

    assert report == Succeeded(1, b"3")


async def test_an_unknown_executor_is_named_with_the_known_ones() -> None:
    report = await run(Doing(lambda call: asyncio.sleep(0)), executor="docker")

    assert isinstance(report, Failed)
    assert report.error.message == "executor: this worker has no 'docker'; it has: do"


async def test_an_assignment_that_cannot_be_read_fails_alone() -> None:
    report = await run(None, params=b"[" * 100_000)

    assert isinstance(report, Failed)
    assert (report.error.type, report.final) == ("MalformedAssignment", True)
