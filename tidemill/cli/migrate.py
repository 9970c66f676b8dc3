"""`tidemill migrate`: bring the schema of a store up to date."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, json_option, settings_options
from tidemill.cli.output import answer, tell
from tidemill.runtime.settings import Settings


@click.command(short_help="Bring the schema up to date.")
@json_option
@settings_options("migrate")
def migrate(as_json: bool, settings: Settings) -> None:
    """Bring the schema of the store up to date, while processes of the last release run.

    The schema only goes forward. One migrates at a time; others wait for it.

    \b
    tidemill migrate --store postgresql://db/mill
    """
    complete(_migrate(settings, as_json))


async def _migrate(settings: Settings, as_json: bool) -> None:
    from tidemill.runtime.migrating import migrate_store

    applied = await migrate_store(settings, tell)
    words = f"{settings.store}: {f'{applied} applied' if applied else 'up to date'}"
    answer({"store": str(settings.store), "applied": applied}, words, as_json)
