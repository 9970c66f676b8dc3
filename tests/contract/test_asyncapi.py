"""The published AsyncAPI document: up to date, sound, and true of what is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.contract.test_cloud_events import a_known_event
from tidemill.domain.facts import FactType
from tidemill.protocol.asyncapi import asyncapi_document
from tidemill.protocol.broker_messages import CHANNELS, TYPES
from tidemill.protocol.cloud_events import encode_event

PUBLISHED = Path(__file__).parents[2] / "docs" / "asyncapi.json"
DOCUMENT = asyncapi_document()


def test_the_published_document_is_up_to_date() -> None:
    current = json.dumps(DOCUMENT, indent=2) + "\n"

    # To renew it: write `current` to the file.
    assert PUBLISHED.read_text(encoding="utf-8") == current


def test_every_fact_and_every_message_of_the_worker_transport_is_there() -> None:
    told = {
        message["name"]
        for channel in DOCUMENT["channels"].values()
        for message in channel["messages"].values()
    }

    assert told >= {f"tidemill.{fact.value}.v1" for fact in FactType}
    assert told >= {TYPES[kind] for kinds in CHANNELS.values() for kind in kinds}


def test_the_document_has_what_asyncapi_demands() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= DOCUMENT["info"].keys()
    for channel in DOCUMENT["channels"].values():
        named = {part.partition("}")[0] for part in channel["address"].split("{")[1:]}
        assert named == channel["parameters"].keys()
    assert {one["action"] for one in DOCUMENT["operations"].values()} == {"send", "receive"}


def test_every_reference_leads_somewhere() -> None:
    def follow(reference: str) -> Any:
        place: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        return place

    assert all(follow(reference) for reference in _references(DOCUMENT))


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


@pytest.mark.parametrize("fact_type", FactType)
def test_what_is_published_fits_its_schema(fact_type: FactType) -> None:
    messages = DOCUMENT["channels"]["events"]["messages"]
    payload = messages[fact_type.value.replace(".", "_")]["payload"]
    schema = {**payload, "components": DOCUMENT["components"]}
    event = json.loads(encode_event(a_known_event(fact_type)))

    jsonschema_rs.validate(schema, event)
    assert not jsonschema_rs.is_valid(schema, event | {"type": "tidemill.other.v1"})
    assert not jsonschema_rs.is_valid(schema, event | {"data": {}})
