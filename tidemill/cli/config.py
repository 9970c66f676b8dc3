"""`tidemill config`: which settings are in force, and where they come from."""

from __future__ import annotations

import os
from typing import Any

import click

from tidemill.cli.options import add_flags, json_option, take_flags
from tidemill.cli.output import say
from tidemill.runtime.settings import ROLES


def _config(role: str | None, as_json: bool, **given: Any) -> None:
    """Print every setting, or those of one ROLE: its value, and where it comes from.

    Passwords and tokens are not shown.
    """
    from tidemill.cli.views.listing import print_json
    from tidemill.runtime.resolving import resolve
    from tidemill.runtime.setting_kinds import plain, shown
    from tidemill.runtime.settings import settings_of
    from tidemill.runtime.wiring import bus_url

    flags, file = take_flags(given, None)
    resolution = resolve(role, flags, os.environ, file)
    rows = [("SETTING", "VALUE", "FROM")]
    objects = []
    for one in settings_of(role):
        value = getattr(resolution.settings, one.name)
        if one.name == "bus":
            value = bus_url(resolution.settings)  # its default depends on the store
        value = "***" if one.secret and value is not None else value
        origin = resolution.origins[one.name]
        rows.append((one.name, shown(value), origin))
        objects.append({"setting": one.name, "value": plain(value), "from": origin})
    if as_json:
        print_json(objects)
        return
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, text, origin in rows:
        say(f"{name:{widths[0]}}  {text:{widths[1]}}  {origin}")


config = click.command("config", short_help="Show settings in force, and where they come from.")(
    click.argument("role", required=False, type=click.Choice(ROLES))(
        json_option(add_flags(_config, None))
    )
)
