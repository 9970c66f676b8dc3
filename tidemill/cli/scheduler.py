"""`tidemill scheduler`: decide what runs where, for workers that connect."""

from __future__ import annotations

import click

from tidemill.cli.options import settings_options
from tidemill.runtime.settings import Settings


@click.command(short_help="Serve workers, beside other schedulers.")
@settings_options("scheduler")
def scheduler(settings: Settings) -> int:
    """Run a scheduler on a PostgreSQL store; any number may share one.

    SIGTERM or Ctrl-C ends it after what workers have reported is committed; they go on elsewhere. A
    second one ends it at once.

    \b
    tidemill scheduler --store postgresql://db/mill --listen 127.0.0.1:7300
    """
    from tidemill.cli.output import tell
    from tidemill.cli.serving import serve
    from tidemill.runtime.roles import scheduler_role

    return serve(scheduler_role(settings, tell), settings)
