"""Messages of the broker transport: to CloudEvents and back, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.roles.worker_stage import RUN, a_token, an_assignment
from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded, WorkerReport
from tidemill.domain.task_run import TaskError
from tidemill.protocol import broker_messages as wire
from tidemill.protocol.broker_codec import assignment_of, command_of, outcome_of, report_of
from tidemill.protocol.broker_messages import (
    BrokerMessage,
    Command,
    decode_answer,
    decode_beat,
    decode_command,
    decode_report,
    encode,
)
from tidemill.protocol.cloud_events import MalformedEvent

NOON = 1_800_000_000_000_000
SESSION = "broker-1"
GRANT: dict[str, Any] = {
    "session": SESSION,
    "namespace": "default",
    "run_id": RUN,
    "position": 3,
    "epoch": 2,
}
TOKEN = wire.TokenData(RUN, 3, 2)
BOUND = wire.BoundData(RUN, 3, 2, 7)
MESSAGES: list[BrokerMessage] = [
    wire.Started(**GRANT, number=4),
    wire.Failed(**GRANT, error=wire.ErrorData(type="E", message="m"), final=True),
    wire.Cancelled(**GRANT),
    wire.Released(**GRANT, unbound=True),
    wire.Advanced(**GRANT, number=1, fraction=0.5, message="half"),
    wire.Printed(**GRANT, number=2, text="a\nb", dropped=7),
    wire.Goodbye(session=SESSION, namespace="default"),
    wire.Heartbeat(
        protocol=1,
        session=SESSION,
        number=9,
        worker="w",
        namespace="default",
        slots=4,
        queues=("default",),
        labels={"zone": "eu"},
        held=(TOKEN,),
        unbound=(TOKEN,),
    ),
    wire.Marker(scheduler="s", number=1),
    wire.Answer(
        session=SESSION, namespace="default", scheduler="s", number=1, bound=(BOUND,), closed=True
    ),
]
DECODERS = {
    wire.REPORTS: decode_report,
    wire.HEARTBEATS: decode_beat,
    wire.ANSWERS: decode_answer,
}
REPORTS: list[WorkerReport] = [
    Succeeded(1, b'{"a":[1,2]}'),
    Succeeded(1),
    Failed(epoch=1, error=TaskError(type="E", message="m", traceback="t"), retry_after_seconds=2.0),
    Failed(epoch=1, error=TaskError(type="E", message="m"), timeout=True),
    CancelConfirmed(1),
    Released(1),
]


def decoded(message: BrokerMessage) -> Any:
    (topic,) = [name for name, kinds in wire.CHANNELS.items() if type(message) in kinds]
    return DECODERS[topic](encode(message, NOON))


def test_every_kind_of_message_has_a_topic() -> None:
    kinds = [kind for some in wire.CHANNELS.values() for kind in some]

    assert sorted(kinds, key=repr) == sorted(wire.TYPES, key=repr)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_as_it_was(message: BrokerMessage) -> None:
    assert decoded(message) == message


@pytest.mark.parametrize("report", REPORTS, ids=repr)
def test_an_outcome_means_the_same_after_its_way(report: WorkerReport) -> None:
    outcome = decoded(outcome_of(a_token(), report, SESSION, "default"))

    assert (outcome.token, report_of(outcome)) == (a_token(), report)


def test_an_assignment_is_the_same_after_its_way() -> None:
    assignment = an_assignment(
        params=b'{"a": [1, 2]}', results={"x": b'"y"'}, attempt_seconds=3.0, heartbeat_seconds=1.0
    )

    command = decode_command(encode(command_of(assignment, "default", alone=True), NOON))

    assert command is not None
    assert (assignment_of(command), command.alone) == (assignment, True)


def test_user_data_travels_as_the_json_that_it_is() -> None:
    command = command_of(an_assignment(params=b'{"a": [1, 2]}'), "default", alone=False)

    event = msgspec.json.decode(encode(command, NOON))

    assert event["type"] == "tidemill.task.scheduled.v1"
    assert event["time"] == "2027-01-15T08:00:00Z"
    assert event["data"]["params"] == {"a": [1, 2]}


def test_what_is_said_again_has_the_same_id_and_other_words_have_others() -> None:
    ids = [msgspec.json.decode(encode(message, NOON))["id"] for message in MESSAGES]
    again = [msgspec.json.decode(encode(message, NOON + 1))["id"] for message in MESSAGES]

    assert ids == again
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (RUN, "not-a-run"),
        (RUN, RUN.replace("0", "\\u0000", 1)),
        (SESSION, "grpc-1"),
        (SESSION, "pool-1"),
        ('"position":3', '"position":-1'),
        ('"position":3', '"position":2147483648'),
        ('"epoch":2', '"epoch":"2"'),
        ('"namespace":"default","run_id"', '"namespace":"","run_id"'),
        ('"specversion":"1.0"', '"specversion":"2.0"'),
    ],
)
def test_a_message_that_breaks_a_rule_is_malformed(old: str, new: str) -> None:
    data = encode(wire.Started(**GRANT, number=4), NOON).decode()
    assert old in data

    with pytest.raises(MalformedEvent):
        decode_report(data.replace(old, new).encode())


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"null", b"[" * 100_000])
def test_garbage_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedEvent):
        decode_beat(data)


def test_a_message_that_is_too_long_is_malformed() -> None:
    message = wire.Completed(**GRANT, result=Raw(b'"' + b"x" * wire.MESSAGE_BYTES_MAX + b'"'))

    with pytest.raises(MalformedEvent, match="1000000 is the limit"):
        decode_report(encode(message, NOON))


def test_an_event_of_another_type_is_passed_over() -> None:
    assert decode_report(encode(wire.Marker(scheduler="s", number=1), NOON)) is None
    assert decode_command(encode(wire.Started(**GRANT, number=4), NOON)) is None


def test_a_command_needs_all_that_a_worker_needs() -> None:
    event = msgspec.json.decode(encode(command_of(an_assignment(), "default", alone=False), NOON))
    del event["data"]["executor"]

    with pytest.raises(MalformedEvent, match="missing required field `executor`"):
        decode_command(msgspec.json.encode(event))


def test_commands_are_what_their_type_says() -> None:
    assert wire.TYPES[Command] == "tidemill.task.scheduled.v1"
