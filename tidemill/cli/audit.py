"""`tidemill audit`: who changed what."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import say, width


@click.group()
def audit() -> None:
    """The audit log: append-only, each entry bound to the one before it."""


@audit.command("list")
@click.option("--action", metavar="NAME", help="Such as key.created.")
@click.option("--actor", metavar="ID", help="Only what this account did.")
@click.option("--everywhere", is_flag=True, help="All namespaces, for administrators of all.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@json_option
@link_options
def list_audit(limit: int, as_json: bool, link: Link, **given: Any) -> None:
    """List entries, newest first."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json, print_rows, when
        from tidemill.cli.views.text import printable

        found = [one async for one in reached.client.audit(limit, **given)]
        if as_json:
            print_json(found)
            return
        rows = [
            (
                when(one.at, width()),
                printable(one.actor_name or one.actor),
                printable(one.action),
                one.outcome,
                printable(one.target),
            )
            for one in found
        ]
        print_rows(("AT", "WHO", "DID", "OUTCOME", "TO"), rows, "entries")

    link.run(work)


@audit.command("verify")
@json_option
@link_options
def verify(as_json: bool, link: Link) -> int:
    """Check the chain; exit 1 when it is broken. Keep the hash elsewhere to compare later."""

    async def work(reached: Any) -> int:
        from tidemill.cli.views.listing import print_json

        found = await reached.client.verify_audit()
        if as_json:
            print_json(found)
        elif found.holds:
            say(f"the chain of {found.entries:,} entries holds: {found.hash}")
        else:
            say(f"the chain is broken at entry {found.broken_at}", err=True)
        return 0 if found.holds else 1

    return link.run(work)
