"""`tidemill migrate`: bring the schema of a store up to date."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, settings_options
from tidemill.cli.output import say, tell
from tidemill.runtime.settings import Settings


@click.command(short_help="Bring the schema up to date.")
@settings_options("migrate")
def migrate(settings: Settings) -> None:
    """Bring the schema of the store up to date, while processes of the last release run.

    The schema only goes forward. One migrates at a time; others wait for it.
    """
    complete(_migrate(settings))


async def _migrate(settings: Settings) -> None:
    from tidemill.runtime.migrating import migrate_store

    applied = await migrate_store(settings, tell)
    say(f"{settings.store}: {f'{applied} applied' if applied else 'up to date'}")
