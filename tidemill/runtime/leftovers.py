"""What an earlier owner of the store left unfinished.

A new owner's workers know the modules of the run that they were started for, not those of a run
that a crash left behind. So the new owner puts such runs aside: they are quarantined, untouched,
until `tidemill resume` takes them up with their own modules.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidemill.domain.identifiers import RunId
from tidemill.domain.run import Run, RunState
from tidemill.ports.queries import RunQuery
from tidemill.ports.store import Store

LEFT = "left unfinished; `tidemill resume` continues it"
"""The reason of the quarantine of a run that was put aside, and of no other."""

PAGE_RUNS = 200
RUNS_MAX = 20_000


async def unfinished_runs(store: Store) -> list[Run]:
    """Runs that have not ended, newest first."""
    found: list[Run] = []
    before: RunId | None = None
    while len(found) < RUNS_MAX:
        states = (RunState.PENDING, RunState.RUNNING)
        query = RunQuery(namespace="default", states=states, after=before, limit=PAGE_RUNS)
        page = await store.reader.runs(query)
        found += page
        if len(page) < PAGE_RUNS:
            break
        before = page[-1].id
    return found


async def put_aside(store: Store, runs: Sequence[Run]) -> None:
    """Keep schedulers away from these runs."""
    wanted = [run for run in runs if run.quarantine is None]
    for first in range(0, len(wanted), PAGE_RUNS):
        async with store.transaction() as tx:
            for run in wanted[first : first + PAGE_RUNS]:
                await tx.runs.quarantine(run.id, LEFT)


async def take_up(store: Store, runs: Sequence[Run]) -> None:
    """Let schedulers work on these runs again; other quarantines stay."""
    wanted = [run for run in runs if run.quarantine == LEFT]
    for first in range(0, len(wanted), PAGE_RUNS):
        async with store.transaction() as tx:
            for run in wanted[first : first + PAGE_RUNS]:
                await tx.runs.release(run.id)


async def sort_out(store: Store, resume: Collection[RunId]) -> list[Run]:
    """Take up the runs to resume, put the others aside; return those put aside."""
    runs = await unfinished_runs(store)
    await take_up(store, [run for run in runs if run.id in resume])
    others = [run for run in runs if run.id not in resume]
    await put_aside(store, others)
    return others
