"""`tidemill secrets`: values that tasks get by name."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import answer
from tidemill.cli.prompts import hidden, is_asked, text_of_stdin


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
@json_option
@link_options
def set_secret(name: str, file: Any, as_json: bool, link: Link) -> None:
    """Set the value of NAME, which is asked for and never part of a command.

    From a pipe it is all that comes, without the end of its last line.

    \b
    tidemill secrets set PAYMENT_TOKEN
    pass show payment | tidemill secrets set PAYMENT_TOKEN
    tidemill secrets set TLS_KEY --file key.pem
    """
    value = _value() if file is None else file.read()

    async def work(reached: Any) -> None:
        after = await reached.client.put_secret(name, value)
        answer(after, f"{name} is {'set' if after.created else 'changed'}", as_json)

    link.run(work, changes=True, creates=True)


def _value() -> str:
    return hidden("value") if is_asked() else text_of_stdin("value")


@secrets.command("remove")
@click.argument("name")
@json_option
@link_options
def remove(name: str, as_json: bool, link: Link) -> None:
    """Take a secret away."""

    async def work(reached: Any) -> None:
        await reached.client.delete_secret(name)
        answer({"name": name, "removed": True}, f"{name} is gone", as_json)

    link.run(work, changes=True)
