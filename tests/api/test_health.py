"""GET /health, as load balancers ask it."""

from __future__ import annotations

import httpx

from tidemill.api.services import HealthReport, Services


async def test_a_process_that_can_work_says_so(client: httpx.AsyncClient) -> None:
    answer = await client.get("/health")

    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_a_process_that_cannot_says_why(
    client: httpx.AsyncClient, services: Services
) -> None:
    async def look() -> HealthReport:
        return HealthReport(role="api", reasons=["store: unreachable"], notes=["bus: slow"])

    services.health = look

    answer = await client.get("/health")

    assert answer.status_code == 503
    assert answer.json() == {
        "status": "unavailable",
        "role": "api",
        "reasons": ["store: unreachable"],
        "notes": ["bus: slow"],
    }
