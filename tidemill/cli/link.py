"""How commands reach a server: the options that say which, and the client that speaks to it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from tidemill.cli.options import complete, take_flags
from tidemill.cli.output import command, say
from tidemill.domain.errors import Conflict, InvalidInput, NotFound, Problem
from tidemill.runtime.resolving import resolve
from tidemill.runtime.settings import Settings, settings_of

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

ROLE = "start"  # what a command needs that changes a store itself
LATEST = "latest"
CANDIDATES_MAX = 200
SHOWN_MAX = 5
TASKS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Which server a command speaks to, or which store when no server is named."""

    settings: Settings
    server: str | None = None
    context: str | None = None
    namespace: str | None = None
    by_store: bool = False  # --store was given: contexts do not count

    def run(
        self,
        work: Callable[[Any], Coroutine[Any, Any, T]],
        *,
        changes: bool = False,
        creates: bool = False,
    ) -> T:
        """Do something with a `Reached`; for `changes` and `creates` see `connect`."""

        async def connected() -> T:
            async with self.open(changes=changes, creates=creates) as reached:
                return await work(reached)

        return complete(connected())

    def open(self, *, changes: bool = False, creates: bool = False) -> Any:
        """A `Reached`, as an async context."""
        from tidemill.runtime.connecting import connect  # not for those who only ask for help

        return connect(
            self.settings,
            self._choice(),
            namespace=self.namespace or os.environ.get("TIDEMILL_NAMESPACE") or None,
            changes=changes,
            creates=creates,
        )

    def _choice(self) -> Any:
        """The server that is named by a flag, the environment or a context; None when none is."""
        from tidemill.client.choosing import Wanted, choose

        if self.by_store and (self.server or self.context):
            text = "names a store and --server or --context a server: give one of them"
            raise InvalidInput([Problem(path="--store", message=text, code="twice")])
        wanted = Wanted(server=self.server, context=self.context, namespace=self.namespace)
        if self.by_store or (os.environ.get("TIDEMILL_STORE") and not _server_named(wanted)):
            return None
        return choose(wanted, os.environ)


def _server_named(wanted: Any) -> bool:
    return bool(
        wanted.server
        or wanted.context
        or os.environ.get("TIDEMILL_SERVER")
        or os.environ.get("TIDEMILL_CONTEXT")
    )


def link_options(command: Command) -> Command:
    """`--server`, `--context`, `--namespace` and `--store`, handed over as `link`."""

    @functools.wraps(command)
    def with_link(**given: Any) -> Any:
        flags, config = take_flags(given, ROLE)
        settings = resolve(ROLE, flags, os.environ, config).settings
        link = link_of(settings, given)
        return command(link=link, **given)

    return cast(Command, server_options(_store_options(with_link)))


def link_of(settings: Settings, given: dict[str, Any]) -> Link:
    """The link that the options say, which are taken out of what click hands over."""
    context = click.get_current_context()
    return Link(
        settings=settings,
        server=given.pop("server"),
        context=given.pop("context"),
        namespace=given.pop("namespace"),
        by_store=context.get_parameter_source("store") is ParameterSource.COMMANDLINE,
    )


def server_options(command: Command) -> Command:
    """`--server`, `--context` and `--namespace`, for `link_of`."""
    for name, metavar, text in (
        ("--namespace", "NAME", "The namespace."),
        ("--context", "NAME", "A server by the name it has in your contexts."),
        ("--server", "URL", "The server to speak to: http(s)://HOST:PORT or unix:PATH."),
    ):
        command = click.option(name, metavar=metavar, help=text)(command)
    return command


def _store_options(command: Command) -> Command:
    """What a command needs when no server is named; only --store is worth a line."""
    for one in reversed([one for one in settings_of(ROLE) if one.option]):
        command = click.option(
            one.option,
            one.name,
            metavar=one.metavar,
            multiple=one.kind.many,
            hidden=one.name != "store",
            help=f"{one.help[0].upper()}{one.help[1:]}.",
        )(command)
    return click.option("--config", metavar="FILE", hidden=True, help="Settings.")(command)


async def find_run(reached: Any, text: str) -> str:
    """The id of the run that is, begins with or ends with the text, or of the latest one."""
    client = reached.client
    if text == LATEST:
        async for run in client.runs(limit=1):
            return str(run.id)
        raise NotFound("there are no runs yet")
    if is_whole_id(text):
        return text.lower()
    wanted = text.lower()
    found = [
        run.id
        async for run in client.runs(limit=CANDIDATES_MAX, text=text)
        if run.id.startswith(wanted) or run.id.endswith(wanted) or run.key == text
    ]
    if len(found) > 1:
        some = ", ".join(found[:SHOWN_MAX])
        message = f"{text!r} fits more than one run ({some}…): give more characters"
        raise InvalidInput([Problem(path="run", message=message, code="ambiguous")])
    if not found:
        raise NotFound(f"no run's id begins or ends with {text!r}; `tidemill runs` lists them")
    return str(found[0])


async def find_task(reached: Any, run_id: str, task: str) -> Any:
    """All that is kept about one task; NotFound names the tasks that there are."""
    from tidemill.cli.views.text import printable

    try:
        return await reached.client.task(run_id, task)
    except NotFound as error:
        names = [
            printable(one.id) async for one in reached.client.tasks(run_id, limit=TASKS_SHOWN_MAX)
        ]
        more = "…" if len(names) == TASKS_SHOWN_MAX else ""
        raise NotFound(f"{error}; the run has {', '.join(names)}{more}") from error


async def refuse_forever(reached: Any, run_id: str) -> None:
    """Conflict when a run would be waited for that nobody carries out."""
    if not reached.served and not (await reached.client.run(run_id)).ended:
        fix = f"{command('resume')} or {command('up')} goes on with it"
        raise Conflict(f"nobody works on the store, so run {run_id} does not move: {fix}")


def is_whole_id(text: str) -> bool:
    """Whether it is an id of a run or an account, and not a part of one or a name."""
    return len(text) == 36 and text.count("-") == 4


def note(text: str) -> None:
    """Tell a person something beside what the command was asked for."""
    say(text, err=True)
