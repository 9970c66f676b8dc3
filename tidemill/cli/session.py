"""What `run`, `resume` and `dead replay` share: an embedded system, watched until its runs end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tidemill.cli.conclusion import conclude, judge, tell_left
from tidemill.cli.interrupts import Interrupts
from tidemill.cli.logs import warnings_to
from tidemill.cli.output import say
from tidemill.cli.views.listing import print_json
from tidemill.cli.views.model import RunModel
from tidemill.cli.views.quiet import QuietView
from tidemill.cli.views.text import printable
from tidemill.cli.watching import View, Watch, choose_view, until_interrupted
from tidemill.client.client import Client
from tidemill.domain.errors import Unavailable
from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.domain.workflow import Workflow
from tidemill.ports.bus import Event
from tidemill.protocol.resources import RunView
from tidemill.runtime import inspection
from tidemill.runtime.connecting import connect
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.settings import Settings

EARLY_FACTS_MAX = 10_000


class RunSession:
    """One embedded system, the view that is open, and the interrupts."""

    def __init__(
        self, settings: Settings, resume: Sequence[RunId] = (), *, quiet: bool = False
    ) -> None:
        self.concluded: list[RunView] = []  # this session's own runs, when it is quiet
        self._quiet = quiet
        self.system = Embedded(settings, resume=resume, notify=self._notify)
        self._own = set(resume)  # other runs may come from a second terminal
        self._view: View | None = None
        self._watch: Watch | None = None
        self._early: deque[Fact] = deque(maxlen=EARLY_FACTS_MAX)  # of runs not watched yet

    async def run_new(self, workflow: Workflow, value: Any) -> int:
        """Start one run and see it to its end."""

        async def begin() -> None:
            self._own.add((await self.system.start(workflow, value)).run_id)

        return await self._see_through(begin)

    async def run_again(self, replay: TaskKey | None = None) -> int:
        """See runs to their end that an earlier process left, or that a replay reopens."""

        async def begin() -> None:
            if replay is not None:
                await self.system.replay(replay)

        return await self._see_through(begin)

    def print_run(self) -> None:
        """Print the run as JSON; nothing when it was interrupted before it began."""
        for run in self.concluded[:1]:
            print_json(run)

    async def _see_through(self, begin: Callable[[], Awaitable[None]]) -> int:
        with Interrupts() as interrupts, warnings_to(self._notify):
            # The ear comes first: runs that are resumed go on before anybody watches them.
            async with self._hearing(), self.system as system:
                tell_left(system.left)
                if await _interrupted_before(system.workers_ready(), interrupts):
                    return interrupts.exit_code
                await begin()
                interrupted = await self._watch_all(interrupts)
            # Only now: the last lines of output are written when the system comes to rest.
            codes = await self._conclude()
        return interrupts.exit_code if interrupted and None in codes else max(c or 0 for c in codes)

    @asynccontextmanager
    async def _hearing(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            try:
                events = await stack.enter_async_context(self.system.bus.subscribe())
            except Unavailable:
                yield  # the store is read every second all the same
                return
            hearing = asyncio.create_task(self._hear(events))
            try:
                yield
            finally:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)

    async def _hear(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            if self._watch is not None and event.fact.run_id == self._watch.run_id:
                self._watch.take(event.fact)
            else:
                self._early.append(event.fact)

    async def _watch_all(self, interrupts: Interrupts) -> bool:
        """Watch one run after the other; more may come from a second terminal."""
        seen = set[RunId]()
        while (run := await self._next_run(seen)) is not None:
            seen.add(run.id)
            if await self._watch_one(run, interrupts):
                return True
        return False

    async def _next_run(self, seen: set[RunId]) -> Run | None:
        """A run that was not watched yet, or that somebody has reopened since."""
        for run_id in self._in_order():
            run = await self.system.store.reader.run("default", run_id)
            reopened = run.state not in RUN_ENDED and run.quarantine is None
            if run_id not in seen or reopened:
                return run
        return None

    def _in_order(self) -> list[RunId]:
        return sorted(self.system.active, key=lambda run_id: (run_id not in self._own, run_id))

    async def _watch_one(self, run: Run, interrupts: Interrupts) -> bool:
        several = len(self.system.active) > 1
        if not self._quiet:
            say(f"\nrun {run.id} ({printable(run.workflow)})" if several else f"run {run.id}")
        model = RunModel.of(await inspection.read_plan(self.system.store, run))
        with QuietView() if self._quiet else choose_view(model) as view:
            self._view = view
            self._watch = self._open_watch(run.id, model, view)
            following = asyncio.create_task(self._watch.follow())
            try:
                return await until_interrupted(self.system, following, interrupts, view)
            finally:
                self._view = self._watch = None
                await _ended(following)

    def _open_watch(self, run_id: RunId, model: RunModel, view: View) -> Watch:
        """A watch that has been told what happened before it was opened."""
        watch = Watch(self.system, run_id, model, view)
        for fact in self._early:
            if fact.run_id == run_id:
                watch.take(fact)
        self._early = deque(
            (fact for fact in self._early if fact.run_id != run_id), EARLY_FACTS_MAX
        )
        return watch

    async def _conclude(self) -> list[int | None]:
        """Tell how every run ended; the exit codes are those of this session's own."""
        codes: list[int | None] = []
        async with connect(self.system.settings) as reached:
            for run_id in self._in_order():
                code = await self._conclude_one(reached.client, run_id)
                codes += [code] if run_id in self._own else []
        return codes

    async def _conclude_one(self, client: Client, run_id: RunId) -> int | None:
        if not self._quiet:
            return await conclude(client, run_id, several=len(self.system.active) > 1)
        run = await client.run(run_id, include=["result"])
        self.concluded += [run] if run_id in self._own else []
        return judge(run)

    def _notify(self, text: str) -> None:
        if self._view is not None:
            self._view.notice(text, self.system.clock.now())
        else:
            say(printable(text), err=True)


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
