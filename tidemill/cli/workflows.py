"""`tidemill workflows`: what is deployed."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import answer, say, width
from tidemill.cli.prompts import confirm


@click.group()
def workflows() -> None:
    """Workflows that are deployed, and their versions. `tidemill deploy` makes them."""


@workflows.command("list")
@click.option("--text", default="", help="A part of the name or title.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@json_option
@link_options
def list_workflows(text: str, limit: int, as_json: bool, link: Link) -> None:
    """List workflows by name."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json, workflow_rows

        found = [one async for one in reached.client.workflows(limit, text=text)]
        if as_json:
            print_json(found)
            return
        for line in workflow_rows(found, width()):
            say(line)

    link.run(work)


@workflows.command("show")
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="The latest when not given.")
@json_option
@link_options
def show_workflow(name: str, version: int | None, as_json: bool, link: Link) -> None:
    """Show a workflow and its definition."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json

        client = reached.client
        shown = (
            await client.workflow(name) if version is None else await client.version(name, version)
        )
        if as_json:
            print_json(shown)
        else:
            _print_definition(shown)

    link.run(work)


@workflows.command("versions")
@click.argument("name")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@json_option
@link_options
def list_versions(name: str, limit: int, as_json: bool, link: Link) -> None:
    """List the versions of a workflow, newest first."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json, version_rows

        found = [one async for one in reached.client.versions(name, limit)]
        if as_json:
            print_json(found)
            return
        for line in version_rows(found, width()):
            say(line)

    link.run(work)


@workflows.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@link_options
def delete_workflow(name: str, yes: bool, as_json: bool, link: Link) -> None:
    """Take a workflow away: it can no longer be started by its name. Its runs stay and go on."""
    confirm(f"take {name} away?", yes=yes)

    async def work(reached: Any) -> None:
        await reached.client.delete_workflow(name)
        answer({"name": name, "deleted": True}, f"{name} is gone; its runs stay", as_json)

    link.run(work, changes=True)


def _print_definition(shown: Any) -> None:
    import msgspec

    from tidemill.cli.views.text import printable, printable_block

    number = getattr(shown, "version", None) or shown.number
    say(f"workflow  {printable(shown.name)}")
    say(f"version   {number} ({shown.version_id})")
    if getattr(shown, "description", ""):
        say(f"about     {printable(shown.description)}")
    if shown.definition is not None:
        import yaml

        plain = msgspec.to_builtins(shown.definition)
        say("")
        say(printable_block(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip()))
