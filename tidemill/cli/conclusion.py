"""The last words of a command that ran something."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tidemill.cli.output import command, say
from tidemill.cli.views.report import failure_report, run_output
from tidemill.cli.views.text import duration, plural, printable, short_id
from tidemill.cli.views.words import ending
from tidemill.domain.plan import Plan
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
    failed = await _tell_failures(store, run, plan) if run.failed else []
    for line in run_output(run, await inspection.read_output(store, run, plan)):
        say(line)
    took = duration((run.ended_at or 0) - (run.started_at or run.created_at))
    state = click.style(str(run.state), fg=_COLOURS[run.state], bold=True)
    why = ending(run.state, run.reason).removeprefix(run.state)
    which = f" {short_id(run.id)}" if several else ""
    say(f"\n{printable(run.workflow)}{which} {state} after {took}{why}")
    if failed:
        which = f"{short_id(run.id)} {failed[0] if run.failed == 1 else 'TASK'}"
        say(f"  all about it:  {command(f'show {which}')}")
        say(f"  try it again:  {command(f'dead replay {which}')}")
    return 0 if run.state is RunState.SUCCEEDED else 1


async def _tell_failures(store: Store, run: Run, plan: Plan) -> list[str]:
    """Print the first failures in full; return the names of their tasks."""
    names = []
    for task in await inspection.failed_tasks(store, run, FAILURES_SHOWN_MAX):
        report = await inspection.read_task(store, run, plan, task.position)
        names.append(report.name)
        say("")
        for line in failure_report(report):
            say(line)
    if run.failed > FAILURES_SHOWN_MAX:
        rest = plural(run.failed - FAILURES_SHOWN_MAX, "more task")
        say(f"\n{rest} failed: {command(f'dead --run {short_id(run.id)}')}")
    return names


def _unfinished(run: Run) -> int | None:
    if run.quarantine is not None:
        say(f"run {run.id} is in quarantine: {printable(run.quarantine)}", err=True)
        return 1
    which = short_id(run.id)
    say(f"{printable(run.workflow)} is not finished: {command(f'resume {which}')}", err=True)
    return None


def tell_left(left: Sequence[Run]) -> None:
    """Say that an earlier process left something unfinished."""
    if left:
        names = ", ".join(f"{printable(run.workflow)} {short_id(run.id)}" for run in left[:3])
        more = "…" if len(left) > 3 else ""
        count = plural(len(left), "run")
        say(f"{count} left unfinished earlier ({names}{more}): {command('resume')}", err=True)
