"""Secrets over HTTP: values go in and never come out."""

from __future__ import annotations

import httpx
import pytest

from tidemill.api.services import Services
from tidemill.credentials.sealing import AesSealing
from tidemill.ports.secrets import SecretKey
from tidemill.runtime.system import SystemEntropy

CANARY = "c4n4ry-in-the-store"


@pytest.fixture
def sealed(services: Services) -> AesSealing:
    """A server that can keep secrets."""
    made = AesSealing(bytes(range(32)), SystemEntropy())
    services.sealing = made
    return made


async def test_a_secret_is_put_listed_replaced_and_forgotten(
    client: httpx.AsyncClient, services: Services, sealed: AesSealing
) -> None:
    first = await client.put("/v1/secrets/db-password", json={"value": "first"})
    again = await client.put("/v1/secrets/db-password", json={"value": CANARY})
    listed = await client.get("/v1/secrets")
    key = SecretKey("default", "db-password")
    stored = (await services.store.payloads.secrets([key]))[key]
    gone = await client.delete("/v1/secrets/db-password")
    missing = await client.delete("/v1/secrets/db-password")

    assert (first.status_code, first.json()) == (201, {"name": "db-password", "created": True})
    assert (again.status_code, again.json()["created"]) == (200, False)
    assert [one["name"] for one in listed.json()["items"]] == ["db-password"]
    assert listed.json()["items"][0].keys() == {"name", "created_at", "changed_at"}
    assert sealed.unseal(key, stored) == CANARY
    assert (gone.status_code, missing.status_code) == (204, 404)


async def test_without_a_key_the_answer_says_what_is_missing(client: httpx.AsyncClient) -> None:
    answer = await client.put("/v1/secrets/token", json={"value": CANARY})

    assert (answer.status_code, answer.json()["code"]) == (409, "NO_SECRETS_KEY")
    assert "the server (`tidemill up` or `api`) needs --secrets-key-file" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("token", {"value": ""}),
        ("token", {"value": CANARY + "x" * 32_768}),
        ("token", {"value": CANARY, "more": CANARY}),
        ("token", {"value": [CANARY]}),
        ("-token", {"value": CANARY}),
        ("t" * 129, {"value": CANARY}),
    ],
)
async def test_a_refusal_does_not_repeat_the_value(
    client: httpx.AsyncClient, sealed: AesSealing, name: str, body: dict[str, object]
) -> None:
    answer = await client.put(f"/v1/secrets/{name}", json=body)

    assert answer.status_code == 400
    assert CANARY not in answer.text
