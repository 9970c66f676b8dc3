"""GET /health: whether this process can do its work, and if not, why."""

from __future__ import annotations

import msgspec

from tidemill.api.routing import PUBLIC, Answer, Call, endpoint


class HealthView(msgspec.Struct, frozen=True, kw_only=True):
    """`ok`, or `unavailable` with the reasons; `notes` are worth knowing and no reason."""

    status: str
    role: str
    reasons: list[str]
    notes: list[str]


@endpoint(
    "GET",
    "/health",
    permission=PUBLIC,
    summary="Whether this process can do its work",
    tag="service",
    statuses={503: "It cannot do its work right now; the body says why."},
)
async def health(call: Call) -> Answer[HealthView]:
    """Asked often by load balancers: it looks at the store once a second at most."""
    found = await call.services.health()
    view = HealthView(
        status="unavailable" if found.reasons else "ok",
        role=found.role,
        reasons=found.reasons,
        notes=found.notes,
    )
    return Answer(view, status=503 if found.reasons else 200)


ENDPOINTS = (health,)
