"""/v1/workers and /v1/queues: who works, and what waits for them."""

from __future__ import annotations

from tidemill.api.routing import Call, endpoint
from tidemill.api.views import queue_views, worker_view
from tidemill.domain.permissions import Permission
from tidemill.protocol.resources import Page, QueueView, WorkerView


@endpoint(
    "GET",
    "/v1/workers",
    permission=Permission.WORKERS_READ,
    summary="List the workers that are connected",
    tag="workers",
)
async def list_workers(call: Call) -> Page[WorkerView]:
    """All of them, with their slots and what they offer to run. There is one page."""
    workers = await call.services.store.reader.workers(call.namespace)
    return Page(items=tuple(worker_view(one) for one in workers))


@endpoint(
    "GET",
    "/v1/queues",
    permission=Permission.WORKERS_READ,
    summary="List queues",
    tag="workers",
)
async def list_queues(call: Call) -> Page[QueueView]:
    """Queues in which something waits or runs, or that somebody serves. There is one page."""
    reader = call.services.store.reader
    workers = await reader.workers(call.namespace)
    return Page(items=queue_views(await reader.queues(call.namespace), workers))


ENDPOINTS = (list_workers, list_queues)
