"""Watches one run over the API: events move the view, a look now and then mends it."""

from __future__ import annotations

import asyncio

from tidemill.cli.output import say
from tidemill.cli.views.model import RunModel
from tidemill.cli.watching import RELOAD_TASKS_MAX, TICK_SECONDS, View, choose_view
from tidemill.client.client import Client
from tidemill.domain.facts import Fact
from tidemill.domain.run import RUN_ENDED
from tidemill.protocol.cloud_events import event_of
from tidemill.protocol.resources import GapView, RunView
from tidemill.runtime.system import SystemClock

RELOAD_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""How often a run is looked at of which nothing is heard."""


class RemoteWatch:
    """One run of a server, and the view that shows it."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._clock = SystemClock()
        self._model: RunModel
        self._view: View
        self._stale = True  # something was heard since the last look
        self._told_end = False

    async def follow(self) -> None:
        """Show what happens until the run has ended."""
        run = await self._client.run(self._run_id)
        self._model = RunModel.of_views(run, [one async for one in self._client.tasks(run.id)])
        say(f"run {run.id}")
        with choose_view(self._model) as self._view:
            self._view.refresh(self._clock.now())
            if run.ended:
                return
            hearing = asyncio.create_task(self._hear())
            try:
                await self._tick_until_end(hearing)
            finally:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)
            await self._look()
            self._view.refresh(self._clock.now())

    async def _hear(self) -> None:
        async for event in self._client.events(self._run_id, on_gap=self._tell_gap):
            known = event_of(event)
            if known is not None:
                self._take(known.fact)

    def _take(self, fact: Fact) -> None:
        self._stale = True
        if fact.position is None:
            self._told_end = fact.state in RUN_ENDED
        elif fact.position >= len(self._model.lines):
            return
        self._view.show(fact, self._model.apply(fact))

    async def _tick_until_end(self, hearing: asyncio.Task[None]) -> None:
        small = len(self._model.lines) <= RELOAD_TASKS_MAX
        reload_at = look_at = 0.0
        while True:
            now = self._clock.monotonic()
            if hearing.done():
                hearing.result()
            due = self._stale and now >= reload_at and small
            if due or now >= look_at or self._told_end:
                reload_at, look_at, self._stale = now + RELOAD_SECONDS, now + LOOK_SECONDS, False
                if (await self._look(tasks=small)).ended:
                    return
                self._told_end = False
            self._view.refresh(self._clock.now())
            await self._clock.sleep(TICK_SECONDS)

    async def _look(self, *, tasks: bool = True) -> RunView:
        run = await self._client.run(self._run_id)
        if tasks:
            self._model.load_views([one async for one in self._client.tasks(self._run_id)])
        return run

    def _tell_gap(self, gap: GapView) -> None:
        self._stale = True
