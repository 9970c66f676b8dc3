"""The last words of a command that ran something."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tidemill.cli.views.report import failure_report, run_output, run_state
from tidemill.cli.views.text import duration, plural, printable, short_id
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.ports.store import Store
from tidemill.runtime import inspection

FAILURES_SHOWN_MAX = 3

_COLOURS = {RunState.SUCCEEDED: "green", RunState.FAILED: "red", RunState.CANCELLED: "magenta"}


async def conclude(store: Store, run: Run) -> int | None:
    """Print how a run ended and what went wrong in it; return its exit code, None if it goes on."""
    if run.state not in RUN_ENDED:
        return _unfinished(run)
    plan = await inspection.read_plan(store, run)
    if run.failed:
        for task in await inspection.failed_tasks(store, run, FAILURES_SHOWN_MAX):
            report = await inspection.read_task(store, run, plan, task.position)
            click.echo("")
            for line in failure_report(report):
                click.echo(line)
        if run.failed > FAILURES_SHOWN_MAX:
            rest = plural(run.failed - FAILURES_SHOWN_MAX, "more task")
            click.echo(f"\n{rest} failed: tidemill dead --run {short_id(run.id)}")
    for line in run_output(run, await inspection.read_output(store, run, plan)):
        click.echo(line)
    took = duration((run.ended_at or 0) - (run.started_at or run.created_at))
    state = click.style(run_state(run, owned=True), fg=_COLOURS[run.state], bold=True)
    click.echo(f"\n{printable(run.workflow)} {state} after {took}")
    if run.failed:
        click.echo(f"  tidemill show {short_id(run.id)} TASK         all about one task")
        click.echo(f"  tidemill dead replay {short_id(run.id)} TASK  try it again")
    return 0 if run.state is RunState.SUCCEEDED else 1


def _unfinished(run: Run) -> int | None:
    if run.quarantine is not None:
        click.echo(f"run {run.id} is in quarantine: {printable(run.quarantine)}", err=True)
        return 1
    click.echo(f"run {run.id} is not finished: tidemill resume {short_id(run.id)}", err=True)
    return None


def tell_left(left: Sequence[Run]) -> None:
    """Say that an earlier process left something unfinished."""
    if left:
        names = ", ".join(f"{printable(run.workflow)} {short_id(run.id)}" for run in left[:3])
        more = "…" if len(left) > 3 else ""
        count = plural(len(left), "run")
        click.echo(f"{count} left unfinished earlier ({names}{more}): tidemill resume", err=True)
