"""A process that writes to a SQLite store without end, to be killed: it says what is committed."""

from __future__ import annotations

import asyncio
import sys

from tests.builders import a_new_run
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.stores.sqlite.store import SqliteStore

CHECKPOINT_PAGES = 4
"""So few pages between checkpoints that a kill most likely falls into one."""


async def write(path: str) -> None:
    """Commit run after run, and print each id after its commit."""
    store = SqliteStore(path, SystemClock())
    store._writer.raw.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    while True:
        new = a_new_run(id=SystemEntropy().run_id(), input=b"x" * 5_000)
        async with store.transaction() as tx:
            await tx.runs.add([new])
            await tx.outbox.append(b"[]")
        print(new.run.id, flush=True)


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1]))
