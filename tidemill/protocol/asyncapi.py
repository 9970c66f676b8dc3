"""The AsyncAPI document of all topics, made from the types and published in docs/asyncapi.json."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidemill.domain.facts import FactType
from tidemill.ports.broker import DEAD_LETTERS
from tidemill.ports.bus import Hint
from tidemill.protocol import broker_messages
from tidemill.protocol.cloud_events import CloudEvent, FactData, type_name

VERSION = "1.0.0"
CLOUD_EVENTS = "application/cloudevents+json"
SCHEMAS = "#/components/schemas/"

_SENT = "send"
_RECEIVED = "receive"

Document = dict[str, Any]


def asyncapi_document() -> Document:
    """Channels, messages and schemas, as AsyncAPI 3.0."""
    channels = {**_bus_channels(), **_worker_channels()}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Tidemill",
            "version": VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": CLOUD_EVENTS,
        "channels": channels,
        "operations": _operations(channels),
        "components": {"schemas": _schemas()},
    }


def _bus_channels() -> Document:
    facts = {_key(fact.value): _fact_message(fact) for fact in FactType}
    return {
        "events": _channel("events", "Facts, keyed by run id: in order within a run.", facts),
        "hints": _channel(
            "hints", "Between schedulers: look at these runs and lanes now.", {"hint": _hint()}
        ),
        "dead": _channel(
            DEAD_LETTERS, "Messages that nobody could read, byte for byte.", {"letter": _letter()}
        ),
    }


def _worker_channels() -> Document:
    return {
        _key(topic): _channel(
            topic,
            _TOPICS[topic],
            {_key(_short(kind)): _worker_message(kind) for kind in kinds},
        )
        for topic, kinds in broker_messages.CHANNELS.items()
    }


def _channel(topic: str, description: str, messages: Document) -> Document:
    parameters: Document = {
        "prefix": {"description": "Of all topics of one installation.", "default": "tidemill"}
    }
    if "{pool}" in topic:
        parameters["pool"] = {"description": "Namespace, queue and labels of the workers."}
    return {
        "address": f"{{prefix}}.{topic}",
        "description": description,
        "parameters": parameters,
        "messages": messages,
    }


def _fact_message(fact: FactType) -> Document:
    return _cloud_event(type_name(fact.value), FactData, f"The fact `{fact.value}`.")


def _worker_message(kind: type[Any]) -> Document:
    summary = (inspect.getdoc(kind) or "").partition("\n")[0]
    return _cloud_event(broker_messages.TYPES[kind], kind, summary)


def _cloud_event(name: str, data: type[Any], summary: str) -> Document:
    return {
        "name": name,
        "summary": summary,
        "contentType": CLOUD_EVENTS,
        "payload": {
            "allOf": [
                {"$ref": SCHEMAS + _schema_name(data)},
                {"properties": {"type": {"const": name}}},
            ]
        },
    }


def _hint() -> Document:
    return {
        "name": "hint",
        "summary": "Not an event: it may be lost, and says nothing that the store does not know.",
        "contentType": "application/json",
        "payload": {"$ref": f"{SCHEMAS}Hint"},
    }


def _letter() -> Document:
    headers = {
        "source": {"type": "string", "description": "Where it was found."},
        "reason": {"type": "string", "description": "What is wrong with it."},
    }
    return {
        "name": "letter",
        "summary": "Whatever it was; its headers say where it was found and what is wrong.",
        "contentType": "application/octet-stream",
        "headers": {"type": "object", "required": list(headers), "properties": headers},
        "payload": {},
    }


def _operations(channels: Iterable[str]) -> Document:
    return {
        f"{action}.{channel}": {
            "action": action,
            "channel": {"$ref": f"#/channels/{channel}"},
            "summary": who,
        }
        for channel in channels
        for action, who in _PARTIES[channel].items()
    }


def _schemas() -> Document:
    kinds: list[type[Any]] = [FactData]
    for of_topic in broker_messages.CHANNELS.values():
        kinds += of_topic
    _, schemas = msgspec.json.schema_components(
        [*(_envelope(kind) for kind in kinds), Hint], ref_template=SCHEMAS + "{name}"
    )
    return dict(sorted(schemas.items()))


def _envelope(kind: type[Any]) -> Any:
    return CloudEvent[_describable(kind)]  # type: ignore[misc]


def _describable(kind: type[Any]) -> type[Any]:
    """The same type, with values in place of raw JSON: that has no schema as a default."""
    fields = msgspec.structs.fields(kind)
    if not any(isinstance(field.default, msgspec.Raw) for field in fields):
        return kind
    return msgspec.defstruct(
        kind.__name__,
        [(field.name, field.type, _default(field)) for field in fields],
        namespace={"__doc__": kind.__doc__},
        kw_only=True,
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if isinstance(field.default, msgspec.Raw):
        return msgspec.json.decode(field.default)
    return msgspec.field(  # type: ignore[call-overload]
        default=field.default, default_factory=field.default_factory
    )


def _schema_name(kind: type[Any]) -> str:
    return f"CloudEvent_{kind.__name__}_"


def _short(kind: type[Any]) -> str:
    return broker_messages.TYPES[kind].removeprefix("tidemill.").removesuffix(".v1")


def _key(name: str) -> str:
    """A key of the document, in which dots and braces have no place."""
    return name.partition(".{")[0].replace(".", "_")


_DESCRIPTION = (
    "Everything that Tidemill puts on a broker. Messages may be lost, doubled, late or out of"
    " order: the store decides. What happened is told by `events`, at least once and in order"
    " within a run; the other topics are Tidemill's own."
)
_TOPICS: Mapping[str, str] = {
    "tasks.{pool}": "Commands to the workers of a pool, shared by them as a group.",
    broker_messages.REPORTS: "What workers say about the tasks they were given.",
    broker_messages.HEARTBEATS: "Who is there, every second; read by every scheduler.",
    broker_messages.ANSWERS: "What schedulers have to say to one session of a worker.",
}
_PARTIES: Mapping[str, Mapping[str, str]] = {
    "events": {_SENT: "The relay publishes the outbox."},
    "hints": {_SENT: "Whoever committed something.", _RECEIVED: "Schedulers and relays."},
    "dead": {_SENT: "Whoever met a message that it could not read."},
    "tasks": {_SENT: "Schedulers, after the commit."},
    "reports": {_RECEIVED: "Schedulers, as a group."},
    "heartbeats": {_SENT: "Schedulers: markers.", _RECEIVED: "Every scheduler."},
    "answers": {_SENT: "Schedulers, after the commit."},
}
