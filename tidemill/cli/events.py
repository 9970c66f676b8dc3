"""`tidemill events`: what happens, as it happens."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, link_options, note
from tidemill.cli.output import say


@click.command()
@click.argument("run", required=False)
@click.option("--workflow", metavar="NAME", help="Only events of runs of this workflow.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Such as task.failed.")
@click.option("--after", metavar="ID", help="Begin behind this event; 0 is the oldest kept.")
@click.option("--limit", type=click.IntRange(1), help="End after so many events.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines; they are printed anyway.")
@link_options
def events(run: str | None, limit: int | None, link: Link, **given: Any) -> None:
    """Follow what happens in RUN, or everywhere, as lines of JSON (CloudEvents); Ctrl-C ends it.

    A connection that is lost is made again, and nothing is left out.

    \b
    tidemill events --type task.failed
    tidemill events latest --after 0 | jq .type
    """

    async def work(reached: Any) -> None:
        import msgspec

        run_id = await find_run(reached, run) if run is not None else None
        followed = reached.client.events(
            run_id,
            workflow=given["workflow"],
            after=given["after"],
            types=given["types"],
            on_gap=_tell_gap,
        )
        count = 0
        async for event in followed:
            say(msgspec.json.encode(event).decode())
            count += 1
            if count == limit:
                return

    link.run(work)


def _tell_gap(gap: Any) -> None:
    note(f"events between {gap.after} and {gap.before} are no longer kept")
