"""`tidemill api`: HTTP for people and programs."""

from __future__ import annotations

import click

from tidemill.cli.options import settings_options
from tidemill.runtime.settings import Settings


@click.command(short_help="Serve the HTTP API, beside others.")
@settings_options("api")
def api(settings: Settings) -> int:
    """Serve the HTTP API on a PostgreSQL store; any number may share one.

    SIGTERM or Ctrl-C takes no more requests, ends streams and lets requests finish within --grace;
    a second one ends it at once.

    \b
    tidemill api --store postgresql://db/mill --listen 127.0.0.1:8080
    """
    from tidemill.cli.output import tell
    from tidemill.cli.serving import serve
    from tidemill.runtime.roles import api_role

    return serve(api_role(settings, tell), settings)
