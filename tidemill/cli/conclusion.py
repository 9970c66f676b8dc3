"""The last words of a command that ran something."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tidemill.cli.output import say
from tidemill.cli.views.report import failure_report, run_output
from tidemill.cli.views.text import duration, plural, printable, short_id
from tidemill.cli.views.words import ending
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.ports.store import Store
from tidemill.runtime import inspection

FAILURES_SHOWN_MAX = 3

_COLOURS = {RunState.SUCCEEDED: "green", RunState.FAILED: "red", RunState.CANCELLED: "magenta"}


async def conclude(store: Store, run: Run, *, several: bool = False) -> int | None:
    """Print how a run ended and what went wrong in it; return its exit code, None if it goes on."""
    if run.state not in RUN_ENDED:
        return _unfinished(run)
    plan = await inspection.read_plan(store, run)
    if run.failed:
        for task in await inspection.failed_tasks(store, run, FAILURES_SHOWN_MAX):
            report = await inspection.read_task(store, run, plan, task.position)
            say("")
            for line in failure_report(report):
                say(line)
        if run.failed > FAILURES_SHOWN_MAX:
            rest = plural(run.failed - FAILURES_SHOWN_MAX, "more task")
            say(f"\n{rest} failed: tidemill dead --run {short_id(run.id)}")
    for line in run_output(run, await inspection.read_output(store, run, plan)):
        say(line)
    took = duration((run.ended_at or 0) - (run.started_at or run.created_at))
    state = click.style(str(run.state), fg=_COLOURS[run.state], bold=True)
    why = ending(run.state, run.reason).removeprefix(run.state)
    which = f" {short_id(run.id)}" if several else ""
    say(f"\n{printable(run.workflow)}{which} {state} after {took}{why}")
    if run.failed:
        say(f"  tidemill show {short_id(run.id)} TASK         all about one task")
        say(f"  tidemill dead replay {short_id(run.id)} TASK  try it again")
    return 0 if run.state is RunState.SUCCEEDED else 1


def _unfinished(run: Run) -> int | None:
    if run.quarantine is not None:
        say(f"run {run.id} is in quarantine: {printable(run.quarantine)}", err=True)
        return 1
    which = short_id(run.id)
    say(f"{printable(run.workflow)} is not finished: tidemill resume {which}", err=True)
    return None


def tell_left(left: Sequence[Run]) -> None:
    """Say that an earlier process left something unfinished."""
    if left:
        names = ", ".join(f"{printable(run.workflow)} {short_id(run.id)}" for run in left[:3])
        more = "…" if len(left) > 3 else ""
        count = plural(len(left), "run")
        say(f"{count} left unfinished earlier ({names}{more}): tidemill resume", err=True)
