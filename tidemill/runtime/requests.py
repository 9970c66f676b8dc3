"""Changes that a command asks for: by the owner of the store, or as its owner for a moment."""

from __future__ import annotations

from tidemill.domain.errors import Unavailable
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.protocol.messages import ProgressReport
from tidemill.runtime.config import EmbeddedSettings, StoreAddress
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

SETTLE_SECONDS = 10.0
POLL_SECONDS = 0.05


async def cancel_run(address: StoreAddress, run_id: RunId) -> Run:
    """Stop a run, and wait a little for its end when this process does it itself."""
    changed = await _ask_owner(address, CancelRun(run_id))
    if changed is not None:
        return changed
    from tidemill.runtime.embedded import Embedded

    async with Embedded(EmbeddedSettings(store=address, workers=0)) as system:
        await system.cancel(run_id)
        deadline = system.clock.monotonic() + SETTLE_SECONDS
        while (run := await system.store.reader.run(run_id)).state not in RUN_ENDED:
            if system.clock.monotonic() > deadline:
                break
            await system.clock.sleep(POLL_SECONDS)
        return run


async def replay_by_owner(address: StoreAddress, key: TaskKey) -> Run | None:
    """Ask the owner to try a dead letter again; None when there is no owner."""
    return await _ask_owner(address, ReplayTask(key.run_id, key.position))


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


async def _ask_owner(address: StoreAddress, command: Command) -> Run | None:
    owner = find_owner(address.path) if address.path is not None else None
    if owner is None or not owner.socket:
        return None
    answer = await ask(owner.socket, command)
    assert isinstance(answer, RunChanged), "the owner answers what it was asked"
    return answer.run
