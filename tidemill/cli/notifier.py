"""`tidemill notifier`: tell the world what has happened."""

from __future__ import annotations

import click

from tidemill.cli.options import settings_options
from tidemill.runtime.settings import Settings


@click.command(short_help="Publish what happens to the bus.")
@settings_options("notifier")
def notifier(settings: Settings) -> int:
    """Publish events to the bus; any number may run, one of them leads.

    \b
    tidemill notifier --store postgresql://db/mill
    """
    from tidemill.cli.output import tell
    from tidemill.cli.serving import serve
    from tidemill.runtime.roles import notifier_role

    return serve(notifier_role(settings, tell), settings)
