"""`tidemill resume`: finish what a crash or Ctrl-C left."""

from __future__ import annotations

import click

from tidemill.cli.options import json_option, settings_options
from tidemill.cli.output import answer
from tidemill.runtime.loops import run_serving
from tidemill.runtime.settings import Settings


@click.command(short_help="Finish what a crash or Ctrl-C left.")
@click.argument("run", required=False)
@json_option
@settings_options("run")
def resume(run: str | None, as_json: bool, settings: Settings) -> int:
    """Finish RUN, or everything that was left unfinished.

    Workers import what they imported before; --import adds to it, or takes the place of a file of
    the same name that has moved. Ctrl-C works as for `tidemill run`.

    \b
    tidemill resume
    tidemill resume latest --import flow.py
    """
    return run_serving(_resume(run, settings, as_json))


async def _resume(text: str | None, settings: Settings, as_json: bool) -> int:
    from tidemill.cli.session import RunSession
    from tidemill.cli.views.listing import print_json
    from tidemill.domain.errors import Conflict
    from tidemill.domain.run import RUN_ENDED
    from tidemill.runtime import inspection
    from tidemill.runtime.leftovers import LEFT, unfinished_runs
    from tidemill.runtime.resuming import settings_for
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    async with reading(settings.store, SystemClock()) as opened:
        if text is None:
            found = [run for run in await unfinished_runs(opened) if run.quarantine in {None, LEFT}]
        else:
            found = [await inspection.find_run(opened, text)]
        if not found:
            answer([], "nothing is left unfinished", as_json)
            return 0
        if found[0].state in RUN_ENDED:
            raise Conflict(f"run {found[0].id} has ended: {found[0].state}")
        settings = await settings_for(opened, settings, found)
    session = RunSession(settings, [run.id for run in found], quiet=as_json)
    code = await session.run_again()
    if as_json:
        session.print_run() if text is not None else print_json(session.concluded)
    return code
