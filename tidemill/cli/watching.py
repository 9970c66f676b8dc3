"""Watches runs to their end, and knows what to do when somebody interrupts."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tidemill.cli.interrupts import Interrupts
from tidemill.cli.output import say
from tidemill.cli.views.model import RunModel, TaskLine
from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import Moment, RunId
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.runtime import inspection
from tidemill.runtime.embedded import Embedded

TICK_SECONDS = 0.08
RELOAD_SECONDS = 1.0
RELOAD_TASKS_MAX = 2_000
"""Larger runs are followed by facts alone, and read once more at the end."""

LAST_FACTS_SECONDS = 5.0


class View(Protocol):
    """Shows a run while it is under way."""

    def show(self, fact: Fact, line: TaskLine | None) -> None:
        """Tell one fact."""

    def notice(self, text: str, now: Moment) -> None:
        """Tell something that is not about a task."""

    def refresh(self, now: Moment) -> None:
        """Let time pass."""


class Watch:
    """One run of an embedded system, and the view that shows it."""

    def __init__(self, system: Embedded, run_id: RunId, model: RunModel, view: View) -> None:
        self.run_id = run_id
        self._system = system
        self._model = model
        self._view = view
        self._told_end = 0  # the generation of the run whose end was told

    def take(self, fact: Fact) -> None:
        """Show one fact about the run."""
        if fact.position is None and fact.state in RUN_ENDED:
            self._told_end = fact.generation
        self._view.show(fact, self._model.apply(fact))

    async def follow(self) -> Run:
        """Show what happens until the run has ended; return it as it ended."""
        await self._reload()
        run = await self._tick_until_end()
        if run.state in RUN_ENDED:
            await self._hear_the_end(run)
        await self._reload()
        self._view.refresh(self._system.clock.now())
        return run

    async def _hear_the_end(self, run: Run) -> None:
        """Facts follow the commit that they tell; the last ones are still on their way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_FACTS_SECONDS):
                while self._told_end < run.generation:
                    await self._system.clock.sleep(TICK_SECONDS / 4)

    async def _tick_until_end(self) -> Run:
        system, reload_at = self._system, self._system.clock.monotonic() + RELOAD_SECONDS
        while True:
            system.check()
            run = await system.store.reader.run("default", self.run_id)
            if run.state in RUN_ENDED or run.quarantine is not None:
                return run
            if system.clock.monotonic() >= reload_at:
                reload_at = system.clock.monotonic() + RELOAD_SECONDS
                if len(self._model.lines) <= RELOAD_TASKS_MAX:
                    await self._reload()
            self._note_progress()
            self._view.refresh(system.clock.now())
            await system.clock.sleep(TICK_SECONDS)

    async def _reload(self) -> None:
        """Facts may be lost on the way; the store is the truth."""
        run = await self._system.store.reader.run("default", self.run_id)
        self._model.load(await inspection.read_tasks(self._system.store, run))

    def _note_progress(self) -> None:
        for report in self._system.progress(self.run_id):
            line = self._model.lines[report.token.position]
            line.progress, line.note = report.fraction, report.message


def choose_view(model: RunModel) -> AbstractContextManager[View]:
    """A tree where one can be drawn, lines elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console

        from tidemill.cli.views.tree import TreeView

        console = Console()
        if not console.is_dumb_terminal:
            return TreeView(model, console)
    from tidemill.cli.views.lines import LineView

    return LineView(model, say)


async def until_interrupted(
    system: Embedded, following: asyncio.Task[Any], interrupts: Interrupts, view: View
) -> bool:
    """Wait for the end; on Ctrl-C drain, on a second one stop at once. True when interrupted."""
    first = asyncio.create_task(interrupts.first.wait())
    second = asyncio.create_task(interrupts.second.wait())
    try:
        await asyncio.wait({following, first}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            return False
        grace = system.settings.grace
        text = f"letting running tasks finish, {grace:g} s at most; {interrupts.again} at once"
        view.notice(text, system.clock.now())
        draining = asyncio.create_task(system.drain())
        await asyncio.wait({draining, second}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            await system.kill()
        await draining
        return True
    finally:
        for task in (first, second):
            task.cancel()
