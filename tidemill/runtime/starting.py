"""Starting a run that others carry out: by the owner of a SQLite file, or in PostgreSQL itself."""

from __future__ import annotations

from typing import Any

import msgspec

from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.domain.workflow import Workflow
from tidemill.engine import runs
from tidemill.engine.runs import Started
from tidemill.ports.clock import Clock
from tidemill.ports.store import Store
from tidemill.runtime.control import RunStarted, StartRun, ask
from tidemill.runtime.owner import find_owner
from tidemill.runtime.reaching import Reach
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.wiring import bus_url, check_schema, open_bus, open_store

POLL_SECONDS = 0.2


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A run that somebody wants; `imports` are the modules that its tasks need."""

    workflow: Workflow
    input: Any
    imports: tuple[str, ...] = ()
    key: str | None = None


async def start_run(settings: Settings, wish: Wish) -> Started:
    """Commit a run; who serves the store carries it out."""
    if settings.store.path is None:
        return await _start_here(settings, wish)
    owner = find_owner(settings.store.path)
    if owner is None or not owner.socket:
        return await _start_as_owner(settings, wish)
    command = StartRun(wish.workflow, wish.input, wish.imports, wish.key)
    answer = await ask(owner.socket, command)
    assert isinstance(answer, RunStarted), "the owner answers what it was asked"
    return Started(answer.run_id, answer.created)


async def _start_here(settings: Settings, wish: Wish) -> Started:
    clock = SystemClock()
    reach = Reach(clock, settings.start_retry, lambda _: None)
    store = await open_store(settings.store, clock, reach)
    bus = open_bus(bus_url(settings))
    try:
        await check_schema(store, settings.store)
        request = runs.StartRequest(workflow=wish.workflow, input=wish.input, key=wish.key)
        [started] = await runs.start(store, bus, SystemEntropy(), [request])
        return started
    finally:
        await bus.close()
        await store.close()


async def _start_as_owner(settings: Settings, wish: Wish) -> Started:
    from tidemill.runtime.embedded import Embedded

    alone = Settings(store=settings.store, workers=0, imports=wish.imports)
    async with Embedded(alone) as system:
        return await system.start(wish.workflow, wish.input, wish.key)


async def until_ended(store: Store, clock: Clock, run_id: RunId) -> Run:
    """The run as it ended, or as it was put into quarantine."""
    while True:
        run = await store.reader.run(run_id)
        if run.state in RUN_ENDED or run.quarantine is not None:
            return run
        await clock.sleep(POLL_SECONDS)
