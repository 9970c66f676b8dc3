"""`tidemill up`: everything on one machine, until somebody stops it."""

from __future__ import annotations

import click

from tidemill.cli.options import settings_options
from tidemill.runtime.settings import Settings


@click.command(short_help="Serve everything on one machine.")
@settings_options("up")
def up(settings: Settings) -> int:
    """Serve HTTP, scheduler, relay and workers on one machine, and what was left unfinished.

    Workers that die are replaced. SIGTERM or Ctrl-C grants no more tasks, lets the running ones
    finish within --grace and hands the rest back; a second one ends it at once.

    \b
    tidemill up --import flow.py --reload
    tidemill up --store postgresql://db/mill --listen 127.0.0.1:0 --workers 4
    """
    from tidemill.cli.output import command, tell
    from tidemill.cli.serving import serve
    from tidemill.runtime.roles import up_role

    hints = (command("start FILE"), command("runs"), command("show latest"))
    return serve(up_role(settings, tell), settings, f"try: {', '.join(hints)}; Ctrl-C stops it")
