"""Workers, queues, how everything stands, and events as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from tidemill.client.calls import Calls, place
from tidemill.client.connection import Request
from tidemill.client.server_events import Following, follow
from tidemill.protocol.resources import (
    EventView,
    GapView,
    OverviewView,
    Page,
    QueueView,
    WorkerView,
)


class LookingCalls(Calls):
    """What only looks."""

    async def workers(self) -> tuple[WorkerView, ...]:
        """The workers that are connected."""
        return (await self._get(place("workers"), Page[WorkerView])).items

    async def queues(self) -> tuple[QueueView, ...]:
        """What waits and runs in each queue."""
        return (await self._get(place("queues"), Page[QueueView])).items

    async def overview(self) -> OverviewView:
        """Runs and tasks by state, queues, workers and rates, all at once."""
        return await self._get(place("overview"), OverviewView)

    def events(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        after: str | None = None,
        types: Sequence[str] = (),
        on_gap: Callable[[GapView], None] | None = None,
    ) -> AsyncIterator[EventView]:
        """Events of one run, of one workflow or of all, from now on or after an id, without end.

        A connection that is lost is made again, and goes on behind the last event.
        """
        path = place("events")
        if run_id is not None:
            path = place("runs", run_id, "events")
        elif workflow is not None:
            path = place("workflows", workflow, "events")
        request = Request(method="GET", path=path, query={"type": list(types)})
        return follow(self.connection, Following(request=request, after=after, on_gap=on_gap))
