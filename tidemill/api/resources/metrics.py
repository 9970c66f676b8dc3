"""/metrics: the numbers of a namespace, for Prometheus."""

from __future__ import annotations

from tidemill.api.routing import Call, Content, endpoint
from tidemill.domain.permissions import Permission

COUNTED_MAX = 10_000_000
"""Where a gauge stops: counting goes on for seconds beyond it."""


@endpoint(
    "GET",
    "/metrics",
    permission=Permission.METRICS_READ,
    summary="Read metrics",
    tag="service",
    media_type="text/plain; version=0.0.4; charset=utf-8",
    errors=("UNAVAILABLE",),
)
async def read_metrics(call: Call) -> Content:
    """Counters since this process started, and gauges as of now."""
    services = call.services
    await services.following.catch_up()
    counts = await services.store.reader.counts(call.namespace, limit=COUNTED_MAX)
    workers = await services.store.reader.workers(call.namespace)
    return Content(services.meters.of(call.namespace).text(counts, workers))


ENDPOINTS = (read_metrics,)
