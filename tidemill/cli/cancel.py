"""`tidemill cancel`: stop a run."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, settings_options
from tidemill.cli.output import say
from tidemill.runtime.settings import Settings


@click.command(short_help="Stop a run.")
@click.argument("run")
@settings_options("start")
def cancel(run: str, settings: Settings) -> int:
    """Stop RUN: what waits is cancelled, what runs is asked to stop.

    RUN is the beginning or the end of a run's id, or `latest`. The process that owns the store does
    it; when there is none, this command does.
    """
    return complete(_cancel(run, settings))


async def _cancel(text: str, settings: Settings) -> int:
    from tidemill.cli.views.text import printable
    from tidemill.domain.run import RUN_ENDED
    from tidemill.runtime import inspection
    from tidemill.runtime.requests import cancel_run
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    address = settings.store
    async with reading(address, SystemClock()) as opened:
        run = await inspection.find_run(opened, text)
    if run.state in RUN_ENDED:
        say(f"run {run.id} has ended already: {run.state}")
        return 0
    after = await cancel_run(settings, run.id)
    words = f"is {after.state}" if after.state in RUN_ENDED else "is asked to stop"
    say(f"run {run.id} ({printable(run.workflow)}) {words}")
    return 0
