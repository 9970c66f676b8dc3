"""/v1/overview: how a namespace stands, at a glance."""

from __future__ import annotations

from tidemill.api.routing import Call, endpoint
from tidemill.api.views import queue_views, worker_view
from tidemill.domain.permissions import Permission
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources import OverviewView, RateView


@endpoint(
    "GET",
    "/v1/overview",
    permission=Permission.RUNS_READ,
    summary="How the namespace stands",
    tag="overview",
)
async def get_overview(call: Call) -> OverviewView:
    """Counts of runs and tasks, queues, workers, and what happens in a second."""
    services, namespace = call.services, call.namespace
    reader = services.store.reader
    counts = await reader.counts(namespace)
    workers = await reader.workers(namespace)
    return OverviewView(
        namespace=namespace,
        at=time_of(services.clock.now()),
        open_runs=counts.open_runs,
        ready=counts.ready,
        held=counts.held,
        running=counts.running,
        backoff=counts.backoff,
        dead_letters=counts.dead_letters,
        slots=counts.slots,
        queues=queue_views(await reader.queues(namespace), workers),
        workers=tuple(worker_view(one) for one in workers),
        rates=RateView() if services.rates is None else services.rates.view(namespace),
    )


ENDPOINTS = (get_overview,)
