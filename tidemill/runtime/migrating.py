"""Bringing a store up to date, for whoever asks for it by name."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.runtime.owner import take_ownership
from tidemill.runtime.reaching import Reach
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemClock
from tidemill.runtime.wiring import check_place, open_store


async def migrate_store(settings: Settings, tell: Callable[[str], None]) -> int:
    """Apply what is left; how many migrations that were. A SQLite file must have no owner."""
    path = settings.store.path
    if path is None:
        return await _migrate(settings, tell)
    check_place(path, make=True)
    ownership = take_ownership(path)
    try:
        return await _migrate(settings, tell)
    finally:
        ownership.release()


async def _migrate(settings: Settings, tell: Callable[[str], None]) -> int:
    clock, applied = SystemClock(), 0

    def count(text: str) -> None:
        nonlocal applied
        applied += text.startswith("applied ")
        tell(text)

    store = await open_store(settings.store, clock, Reach(clock, settings.start_retry, tell))
    try:
        await store.migrate(count)
    finally:
        await store.close()
    return applied
