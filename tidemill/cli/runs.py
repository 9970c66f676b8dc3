"""`tidemill runs`: what has run, and what runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import say, width

STATES = ("PENDING", "RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "CANCELLED")
KINDS = ("run", "job", "steps", "dag")


@click.command()
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), multiple=True)
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="May be repeated.")
@click.option("--kind", type=click.Choice(KINDS), multiple=True, help="The shape asked for.")
@click.option("--text", default="", help="A part of the id, the key or the workflow.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@json_option
@link_options
def runs(labels: tuple[str, ...], limit: int, as_json: bool, link: Link, **given: Any) -> None:
    """List runs, newest first.

    \b
    tidemill runs --state failed --workflow orders
    tidemill runs --label team=mill --json
    """
    for label in labels:
        if not label.partition("=")[0] or "=" not in label:
            raise click.BadParameter(f"{label!r} is not NAME=VALUE", param_hint="--label")
    filters: dict[str, Any] = {name: value for name, value in given.items() if value}
    filters["state"] = [each.upper() for each in given["state"]]

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json, run_rows
        from tidemill.runtime.system import SystemClock

        found = [run async for run in _labelled(reached, labels, limit, filters)]
        if as_json:
            print_json(found)
            return
        now = SystemClock().now()
        for line in run_rows(found, now, served=reached.served, width=width()):
            say(line)
        if len(found) == limit:
            say(f"(the newest {limit}; --limit shows more)")

    link.run(work)


async def _labelled(
    reached: Any, labels: tuple[str, ...], limit: int, filters: dict[str, Any]
) -> AsyncIterator[Any]:
    """Runs with all these labels; the server looks for the first one."""
    if labels:
        filters = {**filters, "label": labels[0]}
    wanted = dict(label.partition("=")[::2] for label in labels)
    count = 0
    async for run in reached.client.runs(limit if len(wanted) < 2 else None, **filters):
        if wanted.items() <= run.labels.items():
            yield run
            count += 1
        if count == limit:
            return
