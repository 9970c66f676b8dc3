"""`tidemill keys`: API keys."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.listed import ITEMS_MAX, find_listed, print_list
from tidemill.cli.members import find_account
from tidemill.cli.options import json_option
from tidemill.cli.output import answer, say

USE = "use it as TIDEMILL_API_KEY"


@click.group()
def keys() -> None:
    """API keys and credentials of workers, bound to the namespace."""


@keys.command("list")
@json_option
@link_options
def list_keys(as_json: bool, link: Link) -> None:
    """List keys, without their secrets."""

    def row(one: Any) -> tuple[str, ...]:
        used = f"{one.last_used_at:%Y-%m-%d %H:%M}" if one.last_used_at else "never"
        return one.id, one.name, one.kind, _state(one), used

    headings = ("ID", "NAME", "KIND", "STATE", "LAST USED")
    link.run(lambda reached: print_list(reached.client.keys(), headings, row, as_json))


@keys.command("create")
@click.argument("name")
@click.option("--scope", "scopes", metavar="PERMISSION", multiple=True, help="May be repeated.")
@click.option("--days", type=click.IntRange(1, 3_650), help="90 if not given; for workers, no end.")
@click.option("--never-expires", is_flag=True)
@click.option(
    "--worker-queue",
    "queues",
    metavar="QUEUE",
    multiple=True,
    help="A credential for workers of this queue; may be repeated.",
)
@click.option("--service-account", metavar="ID|NAME", help="For this account, not for yourself.")
@json_option
@link_options
def create(name: str, as_json: bool, link: Link, **given: Any) -> None:
    """Make a key NAME and print its secret, which is shown this once.

    Without --scope it may do all that its account may do.

    \b
    tidemill keys create ci --scope runs:start --scope runs:read
    tidemill keys create nightly --service-account ci
    tidemill keys create crunchers --worker-queue default --worker-queue gpu
    """

    async def work(reached: Any) -> None:
        from msgspec import UNSET

        from tidemill.cli.views.listing import print_json
        from tidemill.protocol.resources.identity import CreateKey

        account = given["service_account"]
        wanted = CreateKey(
            name=name,
            kind="worker" if given["queues"] else "api",
            queues=given["queues"],
            scopes=_scopes(given["scopes"]),
            expires_in_days=None if given["never_expires"] else given["days"] or UNSET,
            service_account=account and await find_account(reached.client, account),
        )
        made = await reached.client.create_key(wanted)
        if as_json:
            print_json(made)
            return
        say(made.secret)
        use = "put it into the --token-file of workers" if given["queues"] else USE
        say(f"key {made.key.id}, {_state(made.key)}; {use}", err=True)

    link.run(work, changes=True)


@keys.command("revoke")
@click.argument("key", metavar="ID|NAME")
@json_option
@link_options
def revoke(key: str, as_json: bool, link: Link) -> None:
    """End a key, at once and everywhere. A name will do when only one live key has it.

    \b
    tidemill keys revoke ci
    """

    async def work(reached: Any) -> None:
        key_id = await find_listed(reached.client.keys(ITEMS_MAX), key, _lives, "keys")
        await reached.client.revoke_key(key_id)
        answer({"id": key_id, "revoked": True}, "revoked", as_json)

    link.run(work, changes=True)


def _scopes(names: tuple[str, ...]) -> Any:
    from tidemill.domain.permissions import Permission

    known = [str(one) for one in Permission]
    for name in names:
        if name not in known:
            raise click.BadParameter(
                f"{name!r} is none of {', '.join(known)}", param_hint="--scope"
            )
    return tuple(Permission(name) for name in names) or None


def _lives(key: Any) -> bool:
    from tidemill.protocol.cloud_events import moment_of
    from tidemill.runtime.system import SystemClock

    over = key.expires_at is not None and moment_of(key.expires_at) <= SystemClock().now()
    return key.revoked_at is None and not over


def _state(key: Any) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else "without end"
