"""What `run`, `resume` and `dead replay` share: an embedded system, watched until its runs end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

import click

from tidemill.cli.conclusion import conclude, tell_left
from tidemill.cli.interrupts import Interrupts
from tidemill.cli.logs import warnings_to
from tidemill.cli.views.model import RunModel
from tidemill.cli.views.text import printable, short_id
from tidemill.cli.watching import View, Watch, choose_view, until_interrupted
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.workflow import Workflow
from tidemill.ports.bus import Event
from tidemill.runtime import inspection
from tidemill.runtime.config import EmbeddedSettings
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.wiring import reading


class RunSession:
    """One embedded system, the view that is open, and the interrupts."""

    def __init__(self, settings: EmbeddedSettings, resume: Sequence[RunId] = ()) -> None:
        self.system = Embedded(settings, resume=resume, notify=self._notify)
        self._view: View | None = None
        self._watch: Watch | None = None

    async def run_new(self, workflow: Workflow, value: Any) -> int:
        """Start one run and see it to its end."""

        async def begin() -> None:
            run_id = await self.system.start(workflow, value)
            click.echo(f"run {run_id}")

        return await self._see_through(begin)

    async def run_again(self, replay: TaskKey | None = None) -> int:
        """See runs to their end that an earlier process left, or that a replay reopens."""

        async def begin() -> None:
            if replay is not None:
                await self.system.replay(replay)

        return await self._see_through(begin)

    async def _see_through(self, begin: Callable[[], Awaitable[None]]) -> int:
        with Interrupts() as interrupts, warnings_to(self._notify):
            async with self.system as system:
                tell_left(system.left)
                if await _interrupted_before(system.workers_ready(), interrupts):
                    return interrupts.exit_code
                async with system.bus.subscribe() as events:
                    await begin()
                    interrupted = await self._listen_and_watch(events, interrupts)
            # Only now: the last lines of output are written when the system comes to rest.
            codes = await self._conclude()
        return interrupts.exit_code if interrupted and None in codes else max(c or 0 for c in codes)

    async def _listen_and_watch(self, events: AsyncIterator[Event], interrupts: Interrupts) -> bool:
        hearing = asyncio.create_task(self._hear(events))
        try:
            return await self._watch_all(interrupts)
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _hear(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            if self._watch is not None and event.fact.run_id == self._watch.run_id:
                self._watch.take(event.fact)

    async def _watch_all(self, interrupts: Interrupts) -> bool:
        """Watch one run after the other; more may come from a second terminal."""
        seen = set[RunId]()
        while waiting := sorted(self.system.active - seen):
            seen.add(waiting[0])
            if await self._watch_one(waiting[0], interrupts):
                return True
        return False

    async def _watch_one(self, run_id: RunId, interrupts: Interrupts) -> bool:
        store = self.system.store
        run = await store.reader.run(run_id)
        if len(self.system.active) > 1:
            click.echo(f"\n{printable(run.workflow)} {short_id(run.id)}")
        model = RunModel.of(await inspection.read_plan(store, run))
        with choose_view(model) as view:
            self._view = view
            self._watch = Watch(self.system, run_id, model, view)
            following = asyncio.create_task(self._watch.follow())
            try:
                return await until_interrupted(self.system, following, interrupts, view)
            finally:
                self._view = self._watch = None
                await _ended(following)

    async def _conclude(self) -> list[int | None]:
        async with reading(self.system.settings.store, self.system.clock) as store:
            runs = [await store.reader.run(run_id) for run_id in sorted(self.system.active)]
            return [await conclude(store, run) for run in runs]

    def _notify(self, text: str) -> None:
        if self._view is not None:
            self._view.notice(text, self.system.clock.now())
        else:
            click.echo(printable(text), err=True)


async def _interrupted_before(work: Coroutine[Any, Any, None], interrupts: Interrupts) -> bool:
    """Wait for some work, or for somebody who loses patience first."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(interrupts.first.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        return interrupts.first.is_set()
    finally:
        working.cancel()
        waiting.cancel()


async def _ended(following: asyncio.Task[Any]) -> None:
    """Stop following; what went wrong in it is raised."""
    if not following.done():
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    elif not following.cancelled() and (error := following.exception()) is not None:
        raise error
