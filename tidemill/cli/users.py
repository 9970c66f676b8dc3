"""`tidemill users`: accounts of people, and invitations."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.listed import ITEMS_MAX, print_list
from tidemill.cli.members import ROLES, role_argument
from tidemill.cli.options import json_option
from tidemill.cli.output import answer, say
from tidemill.cli.prompts import password
from tidemill.domain.permissions import SYSTEM_NAMESPACE

everywhere_option = click.option(
    "--role", type=click.Choice(ROLES), help="A role in every namespace; for one see `members`."
)


@click.group()
def users() -> None:
    """Accounts of people; for administrators of the whole system."""


@users.command("list")
@json_option
@link_options
def list_users(as_json: bool, link: Link) -> None:
    """List accounts, each with its role everywhere and as a member of the namespace."""
    headings = ("ID", "EMAIL", "NAME", "EVERYWHERE", "MEMBER AS", "STATE")
    roles: dict[str, str] = {}

    def row(one: Any) -> tuple[str, ...]:
        state = "disabled" if one.disabled else "active"
        everywhere = str((one.roles or {}).get(SYSTEM_NAMESPACE, "-"))
        return one.id, one.email, one.name, everywhere, roles.get(one.id, "-"), state

    async def work(reached: Any) -> None:
        if not as_json:
            async for member in reached.client.members(ITEMS_MAX):
                roles[member.id] = str(member.role)
        await print_list(reached.client.users(), headings, row, as_json)

    link.run(work)


@users.command("create")
@click.argument("email")
@click.option("--name", metavar="TEXT")
@everywhere_option
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@json_option
@link_options
def create(email: str, link: Link, as_json: bool, **given: Any) -> None:
    """Make an account for EMAIL; its password is asked for, or the first line of a pipe.

    \b
    tidemill users create ada@example.com --name Ada --role viewer
    tidemill users create ada@example.com < password.txt
    """
    typed = password(from_stdin=given["password_stdin"], twice=True)

    async def work(reached: Any) -> None:
        from msgspec import UNSET

        from tidemill.domain.permissions import Role
        from tidemill.protocol.resources.identity import CreateUser

        wanted = CreateUser(
            email=email,
            password=typed,
            name=given["name"] or UNSET,
            role=Role(given["role"]) if given["role"] else UNSET,
        )
        made = await reached.client.create_user(wanted)
        answer(made, made.id, as_json)

    link.run(work, changes=True)


@users.command("change", short_help="Disable or enable an account, or change its role.")
@click.argument("user_id", metavar="ID")
@click.option("--disable/--enable", "disabled", default=None, help="Keep out, or let in again.")
@everywhere_option
@click.option("--no-role", is_flag=True, help="Take away the role held everywhere.")
@click.option("--password", is_flag=True, help="Ask for a new password.")
@json_option
@link_options
def change_user(user_id: str, as_json: bool, link: Link, **given: Any) -> None:
    """Disable or enable an account, give it another role everywhere, or a new password."""
    typed = password(twice=True) if given["password"] else None

    async def work(reached: Any) -> None:
        from msgspec import UNSET

        from tidemill.domain.permissions import Role
        from tidemill.protocol.resources.identity import ChangeUser

        role: Any = Role(given["role"]) if given["role"] else UNSET
        wanted = ChangeUser(
            disabled=UNSET if given["disabled"] is None else given["disabled"],
            password=typed or UNSET,
            role=None if given["no_role"] else role,
        )
        after = await reached.client.change_user(user_id, wanted)
        answer(after, f"{after.email} is {'disabled' if after.disabled else 'active'}", as_json)

    link.run(work, changes=True)


@users.command("invite", short_help="Invite somebody into the namespace.")
@role_argument
@click.option("--email", metavar="ADDRESS", help="Nobody else can use it then.")
@json_option
@link_options
def invite(role: str, email: str | None, as_json: bool, link: Link) -> None:
    """Invite somebody into the namespace with ROLE; what is printed is shown this once."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json
        from tidemill.domain.permissions import Role
        from tidemill.protocol.resources.identity import Invite

        made = await reached.client.invite(Invite(role=Role(role), email=email))
        if as_json:
            print_json(made)
            return
        say(made.secret)
        say(
            f"good until {made.invitation.expires_at:%Y-%m-%d} at servers with `--registration "
            "invitation`: `tidemill login --invitation`",
            err=True,
        )

    link.run(work, changes=True)


@users.command("invitations")
@json_option
@link_options
def invitations(as_json: bool, link: Link) -> None:
    """List invitations."""

    def row(one: Any) -> tuple[str, ...]:
        state = "used" if one.used_at else f"until {one.expires_at:%Y-%m-%d}"
        return one.id, one.email or "anybody", one.namespace, str(one.role), state

    headings = ("ID", "FOR", "NAMESPACE", "ROLE", "STATE")
    link.run(lambda reached: print_list(reached.client.invitations(), headings, row, as_json))


@users.command("withdraw")
@click.argument("invitation_id", metavar="ID")
@json_option
@link_options
def withdraw(invitation_id: str, as_json: bool, link: Link) -> None:
    """Take an invitation back."""

    async def work(reached: Any) -> None:
        await reached.client.withdraw_invitation(invitation_id)
        answer({"id": invitation_id, "withdrawn": True}, "withdrawn", as_json)

    link.run(work, changes=True)
