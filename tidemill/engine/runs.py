"""Starting and controlling runs: what callers need, from the modules that do it."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.engine.controls import cancel, pause, resume, retry_failed
from tidemill.engine.preparing import COMMIT_ROWS_MAX, ShapeCache, StartRequest, prepare
from tidemill.engine.starting import Outcome, Started, batches, commit
from tidemill.ports.bus import Bus
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import Store

__all__ = [
    "COMMIT_ROWS_MAX",
    "StartRequest",
    "Started",
    "cancel",
    "pause",
    "resume",
    "retry_failed",
    "start",
]


async def start(
    store: Store, bus: Bus, entropy: Entropy, requests: Sequence[StartRequest]
) -> list[Started]:
    """Start a run for each request, or find the one that its key has started.

    InvalidInput when an input does not fit: nothing is stored then. Conflict when a key was used
    with another body: the others are started nevertheless. engine/submissions.py tells each
    request its own fate.
    """
    shapes = ShapeCache()
    prepared = [prepare(request, entropy, shapes) for request in requests]
    outcomes: list[Outcome] = []
    for batch in batches(prepared):
        committed = await commit(store, batch)
        outcomes += committed.outcomes
        await bus.send_hint(committed.hint)
    return [_started(outcome) for outcome in outcomes]


def _started(outcome: Outcome) -> Started:
    if isinstance(outcome, Started):
        return outcome
    raise outcome
