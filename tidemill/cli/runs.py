"""`tidemill runs`: what has run, and what runs."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, json_option, store_option

STATES = ("PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED")


@click.command(short_help="List runs, newest first.")
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), multiple=True)
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@json_option
@store_option
def runs(
    state: tuple[str, ...], workflow: str | None, limit: int, as_json: bool, store: str
) -> None:
    """List runs, newest first."""
    complete(_list(state, workflow, limit, as_json, store))


async def _list(
    states: tuple[str, ...], workflow: str | None, limit: int, as_json: bool, store: str
) -> None:
    from tidemill.cli.views.listing import print_json, run_rows
    from tidemill.domain.run import RunState
    from tidemill.ports.store import RunQuery
    from tidemill.runtime.config import parse_store
    from tidemill.runtime.requests import is_owned
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    chosen = tuple(RunState(state.upper()) for state in states)
    address, clock = parse_store(store), SystemClock()
    async with reading(address, clock) as opened:
        found = await opened.reader.runs(RunQuery(states=chosen, workflow=workflow, limit=limit))
    if as_json:
        print_json(found)
        return
    for line in run_rows(found, clock.now(), owned=is_owned(address)):
        click.echo(line)
    if len(found) == limit:
        click.echo(f"(the newest {limit}; --limit shows more)")
