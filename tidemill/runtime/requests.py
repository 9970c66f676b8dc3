"""Changes that a command asks for: of who serves the store, or done as its owner for a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.engine import dead_letters, runs
from tidemill.ports.bus import Bus
from tidemill.ports.store import Store
from tidemill.protocol.messages import ProgressReport
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.control import (
    AskProgress,
    CancelRun,
    Command,
    ProgressNow,
    ReplayTask,
    RunChanged,
    ask,
)
from tidemill.runtime.owner import find_owner
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemClock
from tidemill.runtime.wiring import MEMORY, check_schema, open_bus, open_store

SETTLE_SECONDS = 10.0
POLL_SECONDS = 0.05

Change: TypeAlias = Callable[[Store, Bus], Awaitable[Run]]


async def cancel_run(settings: Settings, run_id: RunId) -> Run:
    """Stop a run, and wait a little for its end when this process does it itself."""
    changed = await _by_others(
        settings, CancelRun(run_id), lambda store, bus: runs.cancel(store, bus, run_id)
    )
    if changed is not None:
        return changed
    from tidemill.runtime.embedded import Embedded

    alone = Settings(store=settings.store, workers=0, bus=settings.bus or MEMORY)
    async with Embedded(alone) as system:
        await system.cancel(run_id)
        deadline = system.clock.monotonic() + SETTLE_SECONDS
        while (run := await system.store.reader.run(run_id)).state not in RUN_ENDED:
            if system.clock.monotonic() > deadline:
                break
            await system.clock.sleep(POLL_SECONDS)
        return run


async def replay_by_others(settings: Settings, key: TaskKey) -> Run | None:
    """Have a dead letter tried again; None when nobody serves the store."""
    return await _by_others(
        settings,
        ReplayTask(key.run_id, key.position),
        lambda store, bus: dead_letters.replay(store, bus, key),
    )


async def progress_by_owner(address: StoreAddress, run_id: RunId) -> tuple[ProgressReport, ...]:
    """What workers last said about running tasks; nothing when nobody answers."""
    owner = find_owner(address.path) if address.path is not None else None
    if owner is None or not owner.socket:
        return ()
    try:
        answer = await ask(owner.socket, AskProgress(run_id))
    except Unavailable:
        return ()  # it is ending, and a look must not fail for that
    return answer.reports if isinstance(answer, ProgressNow) else ()


def is_owned(address: StoreAddress) -> bool:
    """Whether some process works on the store; on PostgreSQL, nobody can tell."""
    return address.path is None or find_owner(address.path) is not None


async def _by_others(settings: Settings, command: Command, change: Change) -> Run | None:
    """The owner of a SQLite file changes it; PostgreSQL is changed here, if others go on with it.

    None when nobody would.
    """
    if settings.store.path is None:
        return await _beside_others(settings, change)
    owner = find_owner(settings.store.path)
    if owner is None or not owner.socket:
        return None
    answer = await ask(owner.socket, command)
    assert isinstance(answer, RunChanged), "the owner answers what it was asked"
    return answer.run


async def _beside_others(settings: Settings, change: Change) -> Run | None:
    store = await open_store(settings.store, SystemClock())
    try:
        await check_schema(store, settings.store)  # who takes over would bring it up to date
        if not await store.reader.sessions():
            return None  # no worker is connected to any scheduler
        given = settings.bus if settings.bus != MEMORY else None
        bus = open_bus(given or settings.store.dsn or MEMORY)
        try:
            return await change(store, bus)
        finally:
            await bus.close()
    finally:
        await store.close()
