"""`tidemill secrets`: values that tasks get by name."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import say


@click.group()
def secrets() -> None:
    """Secrets of the namespace, for tasks that name them. Values go in and never come out."""


@secrets.command("list")
@json_option
@link_options
def list_secrets(as_json: bool, link: Link) -> None:
    """List the names of secrets."""

    async def work(reached: Any) -> None:
        from tidemill.cli.output import width
        from tidemill.cli.views.listing import print_json, print_rows, when
        from tidemill.cli.views.text import printable

        found = await reached.client.secrets()
        if as_json:
            print_json(found)
            return
        rows = [(printable(one.name), when(one.changed_at, width())) for one in found]
        print_rows(("SECRET", "CHANGED"), rows, "secrets")

    link.run(work, changes=True)


@secrets.command("set", short_help="Set a secret; its value is asked for.")
@click.argument("name")
@click.option("--file", type=click.File("r"), help="Take the value from a file; - is stdin.")
@link_options
def set_secret(name: str, file: Any, link: Link) -> None:
    """Set the value of NAME, which is asked for and never part of a command.

    \b
    tidemill secrets set PAYMENT_TOKEN
    tidemill secrets set TLS_KEY --file key.pem
    """
    value = click.prompt("value", hide_input=True, err=True) if file is None else file.read()

    async def work(reached: Any) -> None:
        after = await reached.client.put_secret(name, value)
        say(f"{name} is {'set' if after.created else 'changed'}")

    link.run(work, changes=True, creates=True)


@secrets.command("remove")
@click.argument("name")
@link_options
def remove(name: str, link: Link) -> None:
    """Take a secret away."""

    async def work(reached: Any) -> None:
        await reached.client.delete_secret(name)
        say(f"{name} is gone")

    link.run(work, changes=True)
