"""`tidemill start`: commit a run, for the processes that serve the store."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.options import complete, read_input, settings_options
from tidemill.cli.output import command, say
from tidemill.runtime.settings import Settings


@click.command(short_help="Start a workflow and leave it to those who serve the store.")
@click.argument("file")
@click.option("--input", "value", metavar="JSON|@FILE", help="The run's input.")
@click.option("--key", metavar="TEXT", help="Start once: the same key names the same run.")
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 when it did not succeed.")
@settings_options("start")
def start(file: str, value: str | None, key: str | None, wait: bool, settings: Settings) -> int:
    """Start the workflow in FILE and print the id of the run.

    On PostgreSQL schedulers pick it up; on SQLite the process that owns the store does, such as
    `tidemill up`.
    """
    from tidemill.cli.describe import load_definition
    from tidemill.domain.inputs import prepare_input
    from tidemill.runtime.starting import Wish

    loaded = load_definition(file)
    given = read_input(value)
    prepare_input(loaded.workflow.input, given)  # refused here, before anything is started
    wish = Wish(workflow=loaded.workflow, input=given, imports=loaded.imports, key=key)
    return complete(_start(wish, wait, settings))


async def _start(wish: Any, wait: bool, settings: Settings) -> int:
    from tidemill.cli.conclusion import conclude
    from tidemill.runtime.requests import is_owned
    from tidemill.runtime.starting import start_run, until_ended
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    started = await start_run(settings, wish)
    say(started.run_id)
    if not started.created:
        say("this key has started it before", err=True)
    if not is_owned(settings.store):
        say(f"nobody works on the store: {command('up')} or {command('resume')} does", err=True)
    if not wait:
        return 0
    clock = SystemClock()
    async with reading(settings.store, clock) as store:
        return await conclude(store, await until_ended(store, clock, started.run_id)) or 0
