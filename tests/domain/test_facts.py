"""Facts as the outbox keeps them."""

from __future__ import annotations

import zlib

import msgspec
import pytest

from tests.builders import NOON, a_run_id
from tidemill.domain.facts import (
    AlikeFacts,
    Fact,
    FactType,
    decode_facts,
    encode_facts,
    joined_facts,
)

RUN_ID = a_run_id()


def a_fact(**fields: object) -> Fact:
    plain = {
        "type": FactType.TASK_FAILED,
        "namespace": "default",
        "run_id": RUN_ID,
        "workflow": "orders",
        "at": NOON,
        "state": "FAILED",
    }
    return msgspec.convert(plain | fields, Fact)


@pytest.mark.parametrize("kind", FactType)
def test_facts_come_back_as_they_were_written(kind: FactType) -> None:
    facts = (
        a_fact(type=kind),
        a_fact(position=0, task="pay", epoch=2, attempt=3, failures=1, losses=1, error="no: ä\n"),
    )

    assert decode_facts(encode_facts(facts)) == facts


def test_what_a_fact_does_not_say_takes_no_room() -> None:
    (written,) = msgspec.json.decode(encode_facts([a_fact()]))

    assert sorted(written) == ["at", "namespace", "run_id", "state", "type", "workflow"]


def test_many_facts_take_the_room_of_few() -> None:
    facts = tuple(a_fact(position=place, run_id=a_run_id()) for place in range(200))

    written = encode_facts(facts)

    assert len(written) < len(msgspec.json.encode(facts)) / 5
    assert decode_facts(written) == facts


def test_what_fits_into_a_page_is_written_as_it_is() -> None:
    facts = [a_fact(error="x" * 3_000)]

    assert encode_facts(facts) == msgspec.json.encode(facts)


@pytest.mark.parametrize("data", [b"", b"{}", b"nonsense", zlib.compress(b"{}"), b"[1]"])
def test_what_is_no_list_of_facts_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_facts(data)


def test_the_first_task_of_a_run_is_told_apart_from_the_run() -> None:
    (fact,) = decode_facts(encode_facts([a_fact(position=0)]))

    assert fact.position == 0


def test_names_of_facts_tell_runs_from_tasks() -> None:
    assert {kind.value.split(".")[0] for kind in FactType} == {"workflow", "task"}
    assert len({kind.value for kind in FactType}) == len(FactType)


def test_the_facts_of_runs_that_begin_alike_are_those_of_each() -> None:
    facts = [a_fact(type=FactType.WORKFLOW_STARTED), a_fact(position=0, task="pay")]
    runs = [a_run_id() for _ in range(3)]
    alike = AlikeFacts(facts)

    written = joined_facts([alike.of(run_id) for run_id in runs])

    assert written == encode_facts(
        [msgspec.structs.replace(fact, run_id=run_id) for run_id in runs for fact in facts]
    )
