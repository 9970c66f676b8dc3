"""The last words of a command that ran something."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tidemill.cli.output import command, say
from tidemill.cli.views.report import failure_report, run_name, run_output, took
from tidemill.cli.views.text import plural, printable, short_id
from tidemill.cli.views.words import ending
from tidemill.client.client import Client
from tidemill.domain.run import Run, RunState
from tidemill.protocol.resources import RunView

FAILURES_SHOWN_MAX = 3

_COLOURS = {RunState.SUCCEEDED: "green", RunState.FAILED: "red", RunState.CANCELLED: "magenta"}


async def conclude(client: Client, run_id: str, *, several: bool = False) -> int | None:
    """Print how a run ended and what went wrong in it; return its exit code, None if it goes on."""
    run = await client.run(run_id, include=["result"])
    if not run.ended:
        return judge(run)
    failed = await _tell_failures(client, run) if run.progress.failed else []
    for line in run_output(run):
        say(line)
    spent = took(run.started_at or run.created_at, run.ended_at, 0)
    state = click.style(str(run.state), fg=_COLOURS.get(run.state), bold=True)
    why = ending(run.state, run.reason).removeprefix(run.state)
    which = f" {short_id(run.id)}" if several else ""
    say(f"\n{run_name(run)}{which} {state} after {spent}{why}")
    if failed:
        which = f"{short_id(run.id)} {failed[0] if run.progress.failed == 1 else 'TASK'}"
        say(f"  all about it:  {command(f'show {which}')}")
        say(f"  try it again:  {command(f'dead replay {which}')}")
    return judge(run)


def judge(run: RunView) -> int | None:
    """The exit code for a run; that it goes on is told, and has none."""
    if not run.ended:
        return _unfinished(run)
    return 0 if run.state is RunState.SUCCEEDED else 1


async def _tell_failures(client: Client, run: RunView) -> list[str]:
    """Print the first failures in full; return the ids of their tasks."""
    names = []
    async for letter in client.dead_letters(limit=FAILURES_SHOWN_MAX, run=run.id):
        names.append(printable(letter.task))
        say("")
        for line in failure_report(await client.task(run.id, letter.task)):
            say(line)
    if run.progress.failed > FAILURES_SHOWN_MAX:
        rest = plural(run.progress.failed - FAILURES_SHOWN_MAX, "more task")
        say(f"\n{rest} failed: {command(f'dead --run {short_id(run.id)}')}")
    return names


def _unfinished(run: RunView) -> int | None:
    if run.quarantine is not None:
        say(f"run {run.id} is in quarantine: {printable(run.quarantine)}", err=True)
        return 1
    which = short_id(run.id)
    say(f"{run_name(run)} is not finished: {command(f'resume {which}')}", err=True)
    return None


def tell_left(left: Sequence[Run]) -> None:
    """Say that an earlier process left something unfinished."""
    if left:
        names = ", ".join(f"{printable(run.workflow)} {short_id(run.id)}" for run in left[:3])
        more = "…" if len(left) > 3 else ""
        count = plural(len(left), "run")
        say(f"{count} left unfinished earlier ({names}{more}): {command('resume')}", err=True)
