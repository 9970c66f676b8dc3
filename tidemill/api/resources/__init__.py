"""What is served, one module per noun, each with a tuple ENDPOINTS; this is the list of them."""

from __future__ import annotations

from tidemill.api.resources import (
    audit,
    auth,
    bulk,
    dead_letters,
    events,
    health,
    jobs,
    keys,
    members,
    metrics,
    namespaces,
    overview,
    runs,
    secrets,
    service_accounts,
    tasks,
    users,
    workers,
    workflows,
)
from tidemill.api.resources.description import description_endpoints
from tidemill.api.routing import Endpoint
from tidemill.api.shapes import chains, dags, drafts
from tidemill.api.shapes import jobs as shapes_jobs

_MODULES = (
    workflows,
    runs,
    secrets,
    tasks,
    jobs,
    bulk,
    dead_letters,
    events,
    workers,
    overview,
    health,
    metrics,
    auth,
    users,
    members,
    service_accounts,
    keys,
    namespaces,
    audit,
    shapes_jobs,
    chains,
    drafts,
    dags,
)


def all_endpoints() -> tuple[Endpoint, ...]:
    """Every endpoint of every module, and those that describe them."""
    served = tuple(one for module in _MODULES for one in module.ENDPOINTS)
    return (*served, *description_endpoints(served))
