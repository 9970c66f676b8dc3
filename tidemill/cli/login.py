"""`tidemill login`, `logout` and `whoami`."""

from __future__ import annotations

import os
from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import complete, json_option
from tidemill.cli.output import answer, say
from tidemill.cli.prompts import hidden, password, shown


@click.command()
@click.option("--server", metavar="URL", help="The server; else that of the context.")
@click.option("--context", "name", metavar="NAME", help="The context to keep the login in.")
@click.option("--namespace", metavar="NAME", help="The namespace that is meant from now on.")
@click.option("--email", metavar="ADDRESS", help="Asked for when not given.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--bootstrap", is_flag=True, help="Become the first administrator of a new server.")
@click.option("--invitation", is_flag=True, help="Register first, with an invitation.")
@json_option
def login(as_json: bool, **given: Any) -> None:
    """Log in with a password, which is asked for and never part of a command.

    A pipe has a line for each thing that would be asked for: the token or invitation, the email,
    the password.

    Tokens are kept in the context file, for your eyes only, and renewed by themselves.

    \b
    tidemill login --server https://tidemill.example.com
    tidemill login --bootstrap --server http://127.0.0.1:8080
    """
    from tidemill.client.contexts import ContextFile

    file = ContextFile.of(os.environ)
    name, server, namespace = _target(file.read(), given)
    if not complete(_wants_login(server)):
        words = f"{server} serves a single user: no login is needed"
        answer({"server": server, "login_needed": False}, words, as_json)
        return
    secret = None
    if given["bootstrap"] or given["invitation"]:
        words = "token that the server printed" if given["bootstrap"] else "invitation"
        secret = hidden(words)
    email = given["email"] or shown("email")
    typed = password(from_stdin=given["password_stdin"], twice=secret is not None)
    tokens = _admitted(server, email, typed, (given["bootstrap"], secret))
    _keep(name, server, namespace, tokens)
    user = tokens.user
    words = f"{user.name} ({user.email}) is logged in to {server}, context {name}"
    answer({"server": server, "context": name, "user": user}, words, as_json)


def _target(contexts: Any, given: dict[str, Any]) -> tuple[str, str, str | None]:
    """The name of the context, its server and namespace."""
    from tidemill.client.choosing import CONTEXT_VARIABLE, DEFAULT_SERVER, SERVER_VARIABLE
    from tidemill.client.contexts import check_server

    named = given["name"] or (None if given["server"] else os.environ.get(CONTEXT_VARIABLE))
    server = given["server"] or (None if named else os.environ.get(SERVER_VARIABLE))
    name = named or (None if server else contexts.current)
    known = contexts.by_name.get(name) if name is not None else None
    if server is None:
        server = known.server if known is not None else DEFAULT_SERVER
    server = check_server(server)
    if name is None:
        name = contexts.of_server(server) or contexts.fresh_name(server)
        known = contexts.by_name.get(name)
    return name, server, given["namespace"] or (known.namespace if known is not None else None)


async def _wants_login(server: str) -> bool:
    """Whether the server lets nobody in who shows nothing; one that is away says so right here."""
    from tidemill.client.client import Client
    from tidemill.domain.errors import Unauthenticated

    async with Client(server) as client:
        try:
            await client.me()
        except Unauthenticated:
            return True
    return False


def _admitted(server: str, email: str, typed: str, first: tuple[bool, str | None]) -> Any:
    """The tokens of a login; who is refused here needs no advice to log in."""
    from tidemill.domain.errors import TidemillError, Unauthenticated

    try:
        return complete(_tokens(server, email, typed, first))
    except Unauthenticated as error:
        raise TidemillError(str(error), code=error.code) from error


async def _tokens(server: str, email: str, typed: str, first: tuple[bool, str | None]) -> Any:
    from tidemill.client.client import Client

    bootstrap, secret = first
    async with Client(server) as client:
        if bootstrap:
            return await client.bootstrap(secret or "", email, typed)
        if secret is not None:
            await client.register(email, typed, invitation=secret)
        return await client.login(email, typed)


def _keep(name: str, server: str, namespace: str | None, tokens: Any) -> None:
    from tidemill.cli.context import change
    from tidemill.client.contexts import Context
    from tidemill.client.renewing import with_tokens

    kept = with_tokens(Context(server=server, namespace=namespace), tokens)
    change(lambda contexts: contexts.with_context(name, kept).using(name))


@click.command()
@click.option("--context", "name", metavar="NAME", help="Another context than the current one.")
@json_option
def logout(name: str | None, as_json: bool) -> None:
    """End the login on the server, and forget its tokens here."""
    import msgspec

    from tidemill.cli.context import change
    from tidemill.client.choosing import Wanted, choose
    from tidemill.client.contexts import ContextFile
    from tidemill.domain.errors import NotFound, Unauthenticated, Unavailable

    choice = choose(Wanted(context=name or ContextFile.of(os.environ).read().current), os.environ)
    chosen = choice.context if choice is not None else None
    if choice is None or chosen is None:
        raise NotFound("nobody is logged in here: `tidemill context list`")
    try:
        complete(_log_out(choice))
    except (Unauthenticated, Unavailable) as error:
        say(f"the server was not told: {error}", err=True)

    def forget(contexts: Any) -> Any:
        kept = msgspec.structs.replace(
            contexts.named(chosen), access_token=None, refresh_token=None, api_key=None
        )
        return contexts.with_context(chosen, kept)

    change(forget)
    done = {"server": choice.server, "context": chosen, "logged_out": True}
    answer(done, f"logged out of {choice.server}", as_json)


async def _log_out(choice: Any) -> None:
    from tidemill.client.client import Client

    async with Client.chosen(choice) as client:
        await client.logout()


@click.command()
@json_option
@link_options
def whoami(as_json: bool, link: Link) -> None:
    """Who the server takes you for, and what you may do in the namespace."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json
        from tidemill.cli.views.text import printable

        me = await reached.client.me()
        if as_json:
            print_json(me)
            return
        say(f"name       {printable(me.name)} ({me.kind})")
        if reached.store is None:
            say(f"server     {printable(reached.client.server)}")
        else:
            say(f"store      {printable(str(reached.store))}")
        say(f"namespace  {printable(me.namespace)}")
        say(
            f"roles      {', '.join(f'{place}: {role}' for place, role in me.roles.items()) or '-'}"
        )
        say(f"may        {', '.join(me.permissions) or '-'}")

    link.run(work)
