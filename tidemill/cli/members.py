"""`tidemill members` and `tidemill service-accounts`: who has which role in a namespace."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, is_whole_id, link_options
from tidemill.cli.listed import ITEMS_MAX, find_listed, print_list
from tidemill.cli.options import json_option
from tidemill.cli.output import answer

ROLES = ("viewer", "operator", "editor", "admin")
role_argument = click.argument("role", type=click.Choice(ROLES))


@click.group()
def members() -> None:
    """Who has which role in the namespace.

    Each role can do all that the one before it can: viewer (look), operator (start, cancel,
    replay), editor (deploy, secrets), admin (members, keys, audit).
    """


@members.command("list")
@json_option
@link_options
def list_members(as_json: bool, link: Link) -> None:
    """List members."""
    headings = ("ID", "NAME", "KIND", "ROLE", "EMAIL")

    def row(one: Any) -> tuple[str, ...]:
        return one.id, one.name, one.kind, str(one.role), one.email or "-"

    link.run(lambda reached: print_list(reached.client.members(), headings, row, as_json))


@members.command("add")
@click.argument("email")
@role_argument
@json_option
@link_options
def add(email: str, role: str, as_json: bool, link: Link) -> None:
    """Give the user with EMAIL a ROLE in the namespace."""

    async def work(reached: Any) -> None:
        from tidemill.domain.permissions import Role

        member = await reached.client.add_member(email, Role(role))
        answer(member, f"{member.name} is {member.role}", as_json)

    link.run(work, changes=True)


@members.command("set")
@click.argument("member_id", metavar="ID")
@role_argument
@json_option
@link_options
def set_role(member_id: str, role: str, as_json: bool, link: Link) -> None:
    """Give a member another ROLE."""

    async def work(reached: Any) -> None:
        from tidemill.domain.permissions import Role

        member = await reached.client.set_member(member_id, Role(role))
        answer(member, f"{member.name} is {member.role}", as_json)

    link.run(work, changes=True)


@members.command("remove")
@click.argument("member_id", metavar="ID")
@json_option
@link_options
def remove(member_id: str, as_json: bool, link: Link) -> None:
    """Take somebody's role in the namespace away."""

    async def work(reached: Any) -> None:
        await reached.client.remove_member(member_id)
        answer({"id": member_id, "removed": True}, "removed", as_json)

    link.run(work, changes=True)


@click.group("service-accounts")
def service_accounts() -> None:
    """Accounts of programs, which come in with API keys (`tidemill keys create`)."""


@service_accounts.command("list")
@json_option
@link_options
def list_accounts(as_json: bool, link: Link) -> None:
    """List accounts of programs."""

    def row(one: Any) -> tuple[str, ...]:
        return one.id, one.name, "disabled" if one.disabled else "active"

    link.run(
        lambda reached: print_list(
            reached.client.service_accounts(), ("ID", "NAME", "STATE"), row, as_json
        )
    )


@service_accounts.command("create", short_help="Make an account with a role, and print its id.")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="In the namespace.")
@json_option
@link_options
def create(name: str, role: str, as_json: bool, link: Link) -> None:
    """Make an account NAME with a role in the namespace, and print its id.

    \b
    tidemill service-accounts create ci --role operator
    """

    async def work(reached: Any) -> None:
        from tidemill.domain.permissions import Role

        made = await reached.client.create_service_account(name, Role(role))
        answer(made, made.id, as_json)

    link.run(work, changes=True)


@service_accounts.command("disable")
@click.argument("account", metavar="ID|NAME")
@json_option
@link_options
def disable(account: str, as_json: bool, link: Link) -> None:
    """End an account of a program, and its keys with it."""

    async def work(reached: Any) -> None:
        account_id = await find_account(reached.client, account)
        await reached.client.disable_service_account(account_id)
        answer({"id": account_id, "disabled": True}, "disabled", as_json)

    link.run(work, changes=True)


async def find_account(client: Any, text: str) -> str:
    """The id of the account of a program that is meant by its id or name."""
    if is_whole_id(text):  # who may not list accounts gives the id
        return text
    accounts = client.service_accounts(ITEMS_MAX)
    return await find_listed(accounts, text, lambda one: not one.disabled, "service accounts")
