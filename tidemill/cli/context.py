"""`tidemill context`: servers by name, and which one is meant when none is named."""

from __future__ import annotations

import os
from typing import Any

import click

from tidemill.cli.options import json_option
from tidemill.cli.output import answer, say
from tidemill.cli.prompts import line_of_stdin


def _file() -> Any:
    from tidemill.client.contexts import ContextFile

    return ContextFile.of(os.environ)


def change(alter: Any) -> Any:
    """Change the contexts while nobody else does; return them as they are then."""
    from tidemill.domain.errors import Unavailable

    file = _file()
    with file.locked() as mine:
        if not mine:
            raise Unavailable(f"{file.path} is being changed by another command: try again")
        after = alter(file.read())
        file.write(after)
        return after


@click.group()
def context() -> None:
    """Servers that you work with, by name.

    They are kept in ~/.config/tidemill/contexts.toml, for your eyes only, with the tokens of your
    logins. Commands use the current one unless --server, --context or TIDEMILL_SERVER says
    otherwise.

    \b
    tidemill context add production https://tidemill.example.com
    tidemill context use production
    """


@context.command("list")
@json_option
def list_contexts(as_json: bool) -> None:
    """List contexts; the current one has a star."""
    from tidemill.cli.views.listing import print_json, print_rows

    contexts = _file().read()
    if as_json:
        print_json([_shown(contexts, name) for name in sorted(contexts.by_name)])
        return
    rows = [
        (
            f"{'*' if name == contexts.current else ' '} {name}",
            one.server,
            one.namespace or "-",
            _identity(one),
        )
        for name, one in sorted(contexts.by_name.items())
    ]
    print_rows(("  CONTEXT", "SERVER", "NAMESPACE", "SHOWS"), rows, "contexts")


@context.command("show")
@click.argument("name", required=False)
@json_option
def show_context(name: str | None, as_json: bool) -> None:
    """Show one context, or the current one. Tokens are not printed."""
    from tidemill.cli.views.listing import print_json
    from tidemill.domain.errors import NotFound

    contexts = _file().read()
    chosen = name or contexts.current
    if chosen is None:
        raise NotFound("no context is current: `tidemill context use NAME`, or add one")
    contexts.named(chosen)
    shown = _shown(contexts, chosen)
    if as_json:
        print_json(shown)
        return
    for key, value in shown.items():
        say(f"{key:10} {value}")


@context.command("use")
@click.argument("name")
@json_option
def use(name: str, as_json: bool) -> None:
    """Make NAME the current context."""
    after = change(lambda contexts: contexts.using(name))
    answer(_shown(after, name), f"{name} is current", as_json)


@context.command("add")
@click.argument("name")
@click.argument("server", metavar="URL")
@click.option("--namespace", metavar="NAME", help="The namespace that is meant when none is named.")
@click.option("--api-key-stdin", is_flag=True, help="Read an API key from standard input.")
@click.option("--use", "current", is_flag=True, help="Make it the current one.")
@json_option
def add(name: str, server: str, as_json: bool, **given: Any) -> None:
    """Add a server, or change one; the first one becomes current.

    \b
    tidemill context add laptop http://127.0.0.1:8080
    tidemill context add shop https://tidemill.example.com --namespace shop --use
    tidemill context add ci https://tidemill.example.com --api-key-stdin < key
    """
    from tidemill.client.contexts import Context, check_server

    key = line_of_stdin() if given["api_key_stdin"] else None
    added = Context(server=check_server(server), namespace=given["namespace"], api_key=key or None)

    def alter(contexts: Any) -> Any:
        after = contexts.with_context(name, added)
        return after.using(name) if given["current"] else after

    answer(_shown(change(alter), name), f"{name} is {added.server}", as_json)


@context.command("remove")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Forget a context and its tokens."""
    change(lambda contexts: contexts.without(name))
    answer({"name": name, "removed": True}, f"{name} is forgotten", as_json)


def _shown(contexts: Any, name: str) -> dict[str, Any]:
    one = contexts.by_name[name]
    return {
        "name": name,
        "server": one.server,
        "namespace": one.namespace or "-",
        "shows": _identity(one),
        "current": name == contexts.current,
    }


def _identity(one: Any) -> str:
    if one.api_key is not None:
        return "an API key"
    return "a login" if one.refresh_token is not None else "nothing"
