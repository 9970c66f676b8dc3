"""`tidemill namespaces`."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.listed import print_list
from tidemill.cli.options import json_option
from tidemill.cli.output import answer


@click.group()
def namespaces() -> None:
    """Namespaces: whatever is in one is seen by its members only."""


@namespaces.command("list")
@json_option
@link_options
def list_namespaces(as_json: bool, link: Link) -> None:
    """List namespaces that you may see."""

    def row(one: Any) -> tuple[str, ...]:
        return one.name, f"{one.created_at:%Y-%m-%d}", one.default_executor or "-"

    headings = ("NAMESPACE", "CREATED", "DEFAULT EXECUTOR")
    link.run(lambda reached: print_list(reached.client.namespaces(), headings, row, as_json))


@namespaces.command("create")
@click.argument("name")
@click.option("--default-executor", metavar="NAME", help="Of tasks that name none.")
@json_option
@link_options
def create(name: str, default_executor: str | None, as_json: bool, link: Link) -> None:
    """Make a namespace."""

    async def work(reached: Any) -> None:
        made = await reached.client.create_namespace(name, default_executor)
        answer(made, f"{made.name} is there", as_json)

    link.run(work, changes=True)


@namespaces.command("change")
@click.argument("name")
@click.option("--default-executor", metavar="NAME", help="Left out: the built-in one.")
@json_option
@link_options
def change(name: str, default_executor: str | None, as_json: bool, link: Link) -> None:
    """Set the executor of tasks that name none."""

    async def work(reached: Any) -> None:
        after = await reached.client.change_namespace(name, default_executor)
        executor = after.default_executor or "the built-in default"
        answer(after, f"{after.name} runs such tasks with {executor}", as_json)

    link.run(work, changes=True)
