"""One run as every answer about it shows it, with what its row alone does not tell."""

from __future__ import annotations

import msgspec

from tidemill.api.looking import error_of, plan_of
from tidemill.api.services import Services
from tidemill.api.views import run_view
from tidemill.domain.run import Run
from tidemill.protocol.resources import RunView

RELEASES_MAX = 100


async def shown_run(services: Services, run: Run) -> RunView:
    """A run with its title, the number of its version, and why it failed."""
    plan = await plan_of(services, run)
    return msgspec.structs.replace(
        run_view(run, has_output=plan.output is not None),
        title=plan.workflow.title,
        version=await _version_of(services, run),
        error=await error_of(services, run),
    )


async def _version_of(services: Services, run: Run) -> int | None:
    """The number of a deployed version; None for a definition that was sent along."""
    reader = services.store.reader
    releases = await reader.releases(run.namespace, run.workflow, 2**31 - 1, RELEASES_MAX)
    return next((one.number for one in releases if one.version_id == run.version_id), None)


__all__ = ["shown_run"]
