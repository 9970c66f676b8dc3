"""`tidemill runs`: what has run, and what runs."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, json_option, store_option
from tidemill.cli.output import say, width
from tidemill.ports.queries import RunQuery
from tidemill.runtime.settings import Settings

STATES = ("PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED")


@click.command(short_help="List runs, newest first.")
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), multiple=True)
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="May be repeated.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@json_option
@store_option
def runs(
    state: tuple[str, ...],
    workflow: str | None,
    labels: tuple[str, ...],
    limit: int,
    as_json: bool,
    settings: Settings,
) -> None:
    """List runs, newest first."""
    from tidemill.domain.run import RunState

    chosen = tuple(RunState(each.upper()) for each in state)
    query = RunQuery(states=chosen, workflow=workflow, limit=limit)
    complete(_list(query, dict(map(_label, labels)), as_json, settings))


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--label")
    return name, value


async def _list(query: RunQuery, labels: dict[str, str], as_json: bool, settings: Settings) -> None:
    from tidemill.cli.views.listing import print_json, run_rows
    from tidemill.runtime import inspection
    from tidemill.runtime.requests import is_owned
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    address, clock = settings.store, SystemClock()
    async with reading(address, clock) as opened:
        found = await inspection.list_runs(opened, query, labels)
    if as_json:
        print_json(found)
        return
    for line in run_rows(found, clock.now(), owned=is_owned(address), width=width()):
        say(line)
    if len(found) == query.limit:
        say(f"(the newest {query.limit}; --limit shows more)")
