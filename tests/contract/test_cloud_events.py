"""Events as CloudEvents: today's encoding, and that of every release before stays readable."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.builders import NOON
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import RunId
from tidemill.ports.bus import Event
from tidemill.protocol.cloud_events import MalformedEvent, decode_event, encode_event

GOLDEN = Path(__file__).parent / "events" / "v1"
RUN = RunId("01980000-0000-7000-8000-000000000001")
STATES = {
    "workflow.accepted": "PENDING",
    "workflow.started": "RUNNING",
    "workflow.paused": "PAUSED",
    "workflow.resumed": "RUNNING",
    "workflow.stopping": "RUNNING",
    "workflow.completed": "SUCCEEDED",
    "workflow.failed": "FAILED",
    "workflow.cancelled": "CANCELLED",
    "workflow.reopened": "RUNNING",
    "task.ready": "READY",
    "task.started": "RUNNING",
    "task.completed": "SUCCEEDED",
    "task.retrying": "BACKOFF",
    "task.failed": "FAILED",
    "task.skipped": "SKIPPED",
    "task.upstream_failed": "UPSTREAM_FAILED",
    "task.cancelling": "CANCELLING",
    "task.cancelled": "CANCELLED",
    "task.reopened": "PENDING",
}


def a_known_event(fact_type: FactType) -> Event:
    """The event whose encoding the golden file holds."""
    fact = Fact(
        type=fact_type,
        namespace="default",
        run_id=RUN,
        workflow="orders",
        at=NOON + 123_456,
        state=STATES[fact_type.value],
        generation=2 if "reopened" in fact_type.value else 1,
    )
    if fact_type.value.startswith("task."):
        fact = replace(fact, task="ship-order", position=3, epoch=2, attempt=2)
    if fact_type.value in {"task.failed", "task.retrying"}:
        error = "TimeoutError: zu spät"
        fact = replace(fact, failures=1, losses=1, reason="exhausted", error=error)
    return Event(id="1042.7", position=1_040, fact=fact)


@pytest.mark.parametrize("fact_type", FactType)
def test_an_event_is_written_as_its_golden_file_says(fact_type: FactType) -> None:
    golden = GOLDEN / f"tidemill.{fact_type.value}.json"

    # A change here is a change of the contract: add a version instead.
    assert json.loads(encode_event(a_known_event(fact_type))) == json.loads(golden.read_bytes())


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_every_event_ever_written_can_be_read(golden: Path) -> None:
    event = decode_event(golden.read_bytes())

    assert event is not None
    assert event == a_known_event(event.fact.type)


@pytest.mark.parametrize("fact_type", FactType)
def test_events_keep_the_rules_of_cloud_events(fact_type: FactType) -> None:
    event = json.loads(encode_event(a_known_event(fact_type)))

    assert event["specversion"] == "1.0"
    assert all(isinstance(event[name], str) and event[name] for name in ("id", "source", "type"))
    assert [name for name in event if not re.fullmatch(r"[a-z0-9]{1,20}", name)] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", event["time"])
    assert re.fullmatch(r"/[\w/.-]+", event["source"])
    assert re.fullmatch(r"tidemill\.(task|workflow)\.[a-z_]+\.v1", event["type"])
    assert event["datacontenttype"] == "application/json"
    assert event["subject"].split("/")[0] == event["partitionkey"] == RUN
    attributes = {name: value for name, value in event.items() if name != "data"}
    assert all(isinstance(value, str) for value in attributes.values())


def test_what_a_later_release_adds_is_passed_over() -> None:
    event = json.loads(encode_event(a_known_event(FactType.TASK_FAILED)))
    event |= {"traceparent": "00-1-2-01", "dataschema": "/later", "later": 7}
    event["data"] |= {"queue": "fast", "nested": {"deep": [1, 2]}}

    assert decode_event(json.dumps(event).encode()) == a_known_event(FactType.TASK_FAILED)


def test_what_an_earlier_release_left_out_has_its_default() -> None:
    event = json.loads(encode_event(a_known_event(FactType.WORKFLOW_STARTED)))
    del event["datacontenttype"], event["subject"], event["partitionkey"]
    event["data"] = {"run_id": RUN, "workflow": "orders", "state": "RUNNING"}

    assert decode_event(json.dumps(event).encode()) == a_known_event(FactType.WORKFLOW_STARTED)


@pytest.mark.parametrize(
    "kind", ["tidemill.task.dreamt.v1", "tidemill.task.ready.v2", "com.example"]
)
def test_an_event_of_an_unknown_type_is_nobodys_business(kind: str) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/x", "type": kind, "data": [1]}

    assert decode_event(json.dumps(event).encode()) is None


@pytest.mark.parametrize(
    "change",
    [
        {"specversion": "2.0"},
        {"id": ""},
        {"source": None},
        {"time": "yesterday"},
        {"time": "2027-01-15T08:00:00"},
        {"position": "minus one"},
        {"position": "9" * 19},
        {"namespace": None},
        {"data": None},
        {"data": {"run_id": 5}},
    ],
)
def test_an_event_that_breaks_the_rules_is_malformed(change: dict[str, Any]) -> None:
    event = json.loads(encode_event(a_known_event(FactType.TASK_READY))) | change

    with pytest.raises(MalformedEvent, match="not an event"):
        decode_event(json.dumps(event).encode())


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_any_other_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedEvent):
        decode_event(data)


def test_bytes_nested_beyond_measure_are_malformed() -> None:
    with pytest.raises(MalformedEvent):
        decode_event(b'{"a":' + b"[" * 100_000)


@given(st.integers(0, 4_000_000_000_000_000), st.integers(1, 10**18 - 1), st.text())
def test_every_event_survives_the_journey(at: int, position: int, error: str) -> None:
    fact = Fact(
        type=FactType.TASK_RETRYING,
        namespace="n",
        run_id=RUN,
        workflow="w",
        at=at,
        state="BACKOFF",
        error=error,
    )
    event = Event(id="1.0", position=position, fact=fact)

    assert decode_event(encode_event(event)) == event
