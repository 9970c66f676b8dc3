"""Controlling runs that are there: stop, pause, resume, try again what failed."""

from __future__ import annotations

from tidemill.domain import reopening
from tidemill.domain.errors import Conflict, NotFound
from tidemill.domain.fact_builders import run_fact
from tidemill.domain.facts import FactType, encode_facts
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.domain.run_transitions import (
    PauseAsked,
    ResumeAsked,
    RunEvent,
    StopAsked,
    advance_run,
)
from tidemill.domain.task_run import Reason
from tidemill.engine.reopening import reopen
from tidemill.engine.retrying import retrying
from tidemill.ports.bus import Bus, Hint
from tidemill.ports.store import Store, Transaction


async def cancel(store: Store, bus: Bus, namespace: str, run_id: RunId) -> Run:
    """Stop a run. Repeating it, or coming too late, is harmless."""

    async def stop() -> Run:
        async with store.transaction() as tx:
            run = await _lock(tx, namespace, run_id)
            return await _change(tx, run, StopAsked(Reason.CANCELLED), FactType.WORKFLOW_STOPPING)

    return await _hurry(bus, await retrying(stop))


async def pause(store: Store, bus: Bus, namespace: str, run_id: RunId) -> Run:
    """Grant nothing more of a run until it is resumed; what runs may end. Repeating is harmless.

    Conflict with the code ENDED when the run has ended, STOPPING while it is being stopped.
    """

    async def hold() -> Run:
        async with store.transaction() as tx:
            run = await _lock(tx, namespace, run_id)
            _refuse_ended(run, "paused")
            if run.stop is not None:
                raise Conflict(f"run {run_id} is being stopped", code="STOPPING")
            return await _change(tx, run, PauseAsked(), FactType.WORKFLOW_PAUSED)

    return await _hurry(bus, await retrying(hold))


async def resume(store: Store, bus: Bus, namespace: str, run_id: RunId) -> Run:
    """Let a paused run go on. Repeating is harmless; Conflict with the code ENDED if it ended."""

    async def go_on() -> Run:
        async with store.transaction() as tx:
            run = await _lock(tx, namespace, run_id)
            _refuse_ended(run, "resumed")
            return await _change(tx, run, ResumeAsked(), FactType.WORKFLOW_RESUMED)

    return await _hurry(bus, await retrying(go_on))


async def retry_failed(store: Store, bus: Bus, namespace: str, run_id: RunId) -> Run:
    """Try everything again that failed in a run, and what was cancelled if it had been stopped.

    Conflict with the code NOTHING_FAILED when there is nothing, STOPPING while it is being stopped.
    """
    return await reopen(store, bus, namespace, run_id, reopening.retry_failed)


async def _lock(tx: Transaction, namespace: str, run_id: RunId) -> Run:
    runs = await tx.runs.lock([run_id], wait=True)
    if not runs or runs[0].namespace != namespace:
        raise NotFound(f"no run {run_id}, or it is in quarantine")
    return runs[0]


def _refuse_ended(run: Run, what: str) -> None:
    if run.state in RUN_ENDED:
        text = f"run {run.id} is {run.state}: only one that has not ended can be {what}"
        raise Conflict(text, code="ENDED")


async def _change(tx: Transaction, run: Run, event: RunEvent, kind: FactType) -> Run:
    """Let the event happen; what is so already stays as it is, untold."""
    now = await tx.now()
    after = advance_run(run, event, now)
    if after != run:
        await tx.runs.save([after])
        await tx.outbox.append(encode_facts([run_fact(after, kind, now)]))
    return after


async def _hurry(bus: Bus, run: Run) -> Run:
    await bus.send_hint(Hint(runs=(run.id,)))
    return run
