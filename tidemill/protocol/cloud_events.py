"""CloudEvents 1.0, JSON, structured mode: how facts and messages travel over every bus.

A reader passes over attributes and fields that it does not know, and over events of types that it
does not know, so releases may be mixed. What is no CloudEvent at all is a MalformedEvent.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from tidemill.domain.errors import TidemillError
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import Moment, RunId
from tidemill.ports.bus import Event

MEDIA_TYPE = "application/cloudevents+json; charset=UTF-8"
"""The content type of a message that holds one event."""

JSON_TYPE = "application/json"

Text = Annotated[str, msgspec.Meta(min_length=1)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
Digits = Annotated[str, msgspec.Meta(pattern=r"^\d{1,18}$")]
D = TypeVar("D")


class MalformedEvent(TidemillError):
    """Bytes that are no CloudEvent, or one that breaks the rules of its type."""


class CloudEvent(msgspec.Struct, Generic[D], frozen=True, kw_only=True, omit_defaults=True):
    """The envelope. Extension attributes are `namespace`, `partitionkey` and `position`."""

    specversion: Literal["1.0"]
    id: Text
    source: Text
    type: Text
    time: Time
    subject: Text | None = None
    datacontenttype: Text | None = None
    namespace: Text | None = None
    partitionkey: Text | None = None
    position: Digits | None = None  # as text: integers of CloudEvents have 32 bits
    data: D


class FactData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a fact tells besides its envelope; a field that is left out has its default."""

    run_id: RunId
    workflow: str
    state: str
    generation: int = 1
    task: str | None = None
    position: int | None = None
    epoch: int = 0
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    reason: str | None = None
    error: str | None = None
    executor: str | None = None
    started_at: datetime | None = None


class _Outline(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known of an event before the rest of it can be read."""

    specversion: Literal["1.0"]
    id: Text
    source: Text
    type: Text


def type_name(name: str) -> str:
    """`task.ready` as a type of CloudEvents."""
    return f"tidemill.{name}.v1"


def source_of(namespace: str) -> str:
    """Where events of a namespace come from."""
    return f"/tidemill/{namespace}"


def time_of(moment: Moment) -> datetime:
    """A moment as CloudEvents have it; one beyond the year 9999 is its last."""
    return _EPOCH + min(max(moment, 0), _MOMENT_MAX) * _MICROSECOND


def moment_of(time: datetime) -> Moment:
    """The other way round."""
    return (time - _EPOCH) // _MICROSECOND


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOMENT_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_TYPES = {fact_type: type_name(fact_type.value) for fact_type in FactType}
_FACT_TYPES = {name: fact_type for fact_type, name in _TYPES.items()}
_encoder = msgspec.json.Encoder()
_outlines = msgspec.json.Decoder(_Outline)
_facts = msgspec.json.Decoder(CloudEvent[FactData])


def encode_event(event: Event) -> bytes:
    """A fact as the world sees it."""
    fact = event.fact
    subject = fact.run_id if fact.task is None else f"{fact.run_id}/{fact.task}"
    return _encoder.encode(
        CloudEvent(
            specversion="1.0",
            id=event.id,
            source=source_of(fact.namespace),
            type=_TYPES[fact.type],
            time=time_of(fact.at),
            subject=subject,
            datacontenttype=JSON_TYPE,
            namespace=fact.namespace,
            partitionkey=fact.run_id,
            position=str(event.position),
            data=_data_of(fact),
        )
    )


def decode_event(data: bytes) -> Event | None:
    """Read back a fact; None for a CloudEvent of another type, MalformedEvent for anything else."""
    try:
        fact_type = _FACT_TYPES.get(_outlines.decode(data).type)
        return None if fact_type is None else _event_of(fact_type, _facts.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(f"not an event: {error}") from error


def event_of(event: CloudEvent[FactData]) -> Event | None:
    """The fact in an event that was read already; None when it is of another type."""
    fact_type = _FACT_TYPES.get(event.type)
    return None if fact_type is None else _event_of(fact_type, event)


def encode_cloud_event(event: CloudEvent[Any]) -> bytes:
    """Any event as JSON."""
    return _encoder.encode(event)


def cloud_event_type(data: bytes) -> str:
    """The type of an event, to tell how the rest is read; MalformedEvent when there is none."""
    try:
        return _outlines.decode(data).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(f"not an event: {error}") from error


def _data_of(fact: Fact) -> FactData:
    return FactData(
        run_id=fact.run_id,
        workflow=fact.workflow,
        state=fact.state,
        generation=fact.generation,
        task=fact.task,
        position=fact.position,
        epoch=fact.epoch,
        attempt=fact.attempt,
        failures=fact.failures,
        losses=fact.losses,
        reason=fact.reason,
        error=fact.error,
        executor=fact.executor,
        started_at=None if fact.started_at is None else time_of(fact.started_at),
    )


def _event_of(fact_type: FactType, event: CloudEvent[FactData]) -> Event:
    if event.namespace is None or event.position is None:
        raise MalformedEvent("not an event: a fact has the attributes namespace and position")
    data = event.data
    fact = Fact(
        type=fact_type,
        namespace=event.namespace,
        run_id=data.run_id,
        workflow=data.workflow,
        at=moment_of(event.time),
        state=data.state,
        generation=data.generation,
        task=data.task,
        position=data.position,
        epoch=data.epoch,
        attempt=data.attempt,
        failures=data.failures,
        losses=data.losses,
        reason=data.reason,
        error=data.error,
        executor=data.executor,
        started_at=None if data.started_at is None else moment_of(data.started_at),
    )
    return Event(id=event.id, position=int(event.position), fact=fact)
