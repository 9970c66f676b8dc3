"""The OpenAPI document: published, sound, closed where requests are concerned, and complete.

To renew the published one: python -m tests.api.test_openapi
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from jsonschema_rs import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31

from tests.api.endpoints import ENDPOINTS
from tidemill.api.openapi import openapi_document
from tidemill.api.resources import all_endpoints
from tidemill.api.routing import PUBLIC, Endpoint
from tidemill.domain.permissions import Permission

PUBLISHED = Path(__file__).parents[2] / "docs" / "openapi.json"
SMALL = openapi_document(ENDPOINTS)


def current() -> str:
    """The document of this release, as it is published."""
    document = msgspec.to_builtins(openapi_document(all_endpoints()))
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def test_the_published_document_is_up_to_date() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == current()


@pytest.mark.parametrize("document", [SMALL, json.loads(current())], ids=["small", "whole"])
def test_the_document_is_openapi(document: dict[str, Any]) -> None:
    found = list(Draft202012Validator(OPENAPI_31).iter_errors(json.loads(json.dumps(document))))

    assert [error.message for error in found] == []


async def test_the_server_serves_it(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/openapi.json")
    again = await client.get("/v1/openapi.json", headers={"if-none-match": answer.headers["etag"]})

    assert answer.json() == json.loads(current())
    assert again.status_code == 304


def test_every_endpoint_is_described_once() -> None:
    document = json.loads(current())
    told = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]

    assert sorted(told) == sorted(one.name for one in all_endpoints())
    assert len(set(told)) == len(told)


def test_every_reference_leads_somewhere() -> None:
    document = json.loads(current())

    for reference in _references(document):
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _references(part)


@pytest.mark.parametrize("one", all_endpoints(), ids=lambda one: one.name)
def test_what_is_sent_and_not_understood_is_refused(one: Endpoint) -> None:
    kinds = [kind for kind in (*one.consumes.values(), one.query) if kind is not None]

    for name in {name for kind in kinds for name in _open_structs(kind)}:
        pytest.fail(f"{name} lets unknown fields through: add forbid_unknown_fields=True")


def _open_structs(kind: Any) -> Iterator[str]:
    components = msgspec.json.schema(kind).get("$defs", {})
    for name, schema in components.items():
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            yield name


def test_an_operation_tells_its_types_errors_and_permission() -> None:
    operation = SMALL["paths"]["/things"]["post"]

    assert operation["operationId"] == "make_thing"
    assert operation["x-permission"] == Permission.RUNS_START
    assert operation["requestBody"]["content"]["application/json"]["example"] == {"name": "bolt"}
    assert {"201", "400", "401", "403", "409", "413", "415", "429", "500", "503"} <= operation[
        "responses"
    ].keys()


def test_query_parameters_have_bounds_and_no_null() -> None:
    parameters = {one["name"]: one for one in SMALL["paths"]["/things"]["get"]["parameters"]}

    assert parameters["limit"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 10,
    }
    assert parameters["after"]["schema"] == {"type": "string"}
    assert parameters["Tidemill-Namespace"]["in"] == "header"


def test_public_operations_need_no_token() -> None:
    for one in ENDPOINTS:
        security = SMALL["paths"][one.path][one.method.lower()]["security"]
        assert security == ([] if one.permission is PUBLIC else [{"bearer": []}])


async def test_the_page_loads_nothing_from_outside(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    style, script = await client.get("/docs/docs.css"), await client.get("/docs/docs.js")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for text in (page.text, style.text, script.text):
        assert "//" not in text.replace("// ", "").replace("//127", "")
        assert "unsafe" not in text
        assert "innerHTML" not in text
    assert "style=" not in page.text
    assert "<script>" not in page.text


if __name__ == "__main__":
    PUBLISHED.write_text(current(), encoding="utf-8")
