"""The `tidemill` command. Each command is imported when it is asked for, to start fast."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click
import click.shell_completion

from tidemill import __version__
from tidemill.cli.output import wants_colour
from tidemill.domain.errors import (
    InvalidInput,
    InvalidWorkflow,
    Problem,
    TidemillError,
    Unauthenticated,
    Unavailable,
)


class Entry(NamedTuple):
    """Where a command lives, and its line on the first page, which is printed without it."""

    target: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Run on this machine": {
        "run": Entry("run:run", "Run a workflow to its end."),
        "resume": Entry("resume:resume", "Finish what a crash or Ctrl-C left."),
        "validate": Entry("validate:validate", "Check a definition without running it."),
        "init": Entry("init:init", "Write a first project."),
        "print": Entry("print:print_command", "Print a definition as YAML, JSON or Python."),
    },
    "Start and steer": {
        "start": Entry("start:start", "Start a workflow and leave it to those who serve."),
        "wait": Entry("wait:wait", "Wait for the end of a run."),
        "watch": Entry("watch:watch", "Watch a run live, as a tree."),
        "cancel": Entry("steering:cancel", "Stop a run."),
        "pause": Entry("steering:pause", "Begin no more tasks of a run."),
        "continue": Entry("steering:continue_run", "Let a paused run go on."),
        "retry": Entry("steering:retry", "Try the failed tasks of a run again."),
        "job": Entry("job:job", "Submit, list and show jobs."),
        "bulk": Entry("bulk:bulk", "Start jobs or runs from a file, by the thousand."),
        "dead": Entry("dead:dead", "List, show, replay and discard tasks that failed for good."),
    },
    "Look": {
        "runs": Entry("runs:runs", "List runs, newest first."),
        "show": Entry("show:show", "Show a run, or one task of it."),
        "logs": Entry("task_output:logs", "Print what a task has printed."),
        "events": Entry("events:events", "Follow what happens, as JSON lines."),
        "top": Entry("top:top", "Queues, workers, rates and runs, live."),
        "workers": Entry("looking:workers", "List connected workers and what they offer."),
        "queues": Entry("looking:queues", "List queues, what waits and who serves."),
        "workflows": Entry("workflows:workflows", "List, show and delete deployed workflows."),
        "deploy": Entry("deploy:deploy", "Deploy workflows to a server."),
    },
    "Servers and identity": {
        "context": Entry("context:context", "Name servers, and choose one."),
        "login": Entry("login:login", "Log in to a server."),
        "logout": Entry("login:logout", "Forget the login, here and on the server."),
        "whoami": Entry("login:whoami", "Who the server takes you for."),
        "users": Entry("users:users", "Accounts of people, and invitations."),
        "members": Entry("members:members", "Who has which role in a namespace."),
        "keys": Entry("keys:keys", "API keys and credentials of workers."),
        "service-accounts": Entry("members:service_accounts", "Accounts of programs."),
        "namespaces": Entry("namespaces:namespaces", "Namespaces and their settings."),
        "secrets": Entry("secrets:secrets", "Secrets by name; values are never shown."),
        "audit": Entry("audit:audit", "Who changed what."),
    },
    "Serve": {
        "up": Entry("up:up", "Serve everything on one machine."),
        "api": Entry("api:api", "Serve HTTP for people and programs."),
        "scheduler": Entry("scheduler:scheduler", "Decide what runs where."),
        "worker": Entry("worker:worker", "Run tasks for schedulers."),
        "notifier": Entry("notifier:notifier", "Publish what happens."),
        "migrate": Entry("migrate:migrate", "Bring the schema of the store up to date."),
        "health": Entry("health:health", "Ask a role whether it is ready."),
        "config": Entry("config:config", "Show settings in force, and where they come from."),
        "conformance": Entry("conformance:conformance", "Try a worker against the protocol."),
        "completion": Entry("completion:completion", "Shell completion for bash, zsh and fish."),
    },
}
COMMANDS: Mapping[str, Entry] = {
    name: entry for section in SECTIONS.values() for name, entry in section.items()
}

FAILED = 1
REFUSED = 2
INTERRUPTED = 130


class Commands(click.Group):
    """Finds commands by name in the table above, in its order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order in which a person meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(importlib.import_module(f"tidemill.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is meant, or name those that look like it."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=2)
            hint = f", did you mean {' or '.join(map(repr, close))}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every command under its heading; none is imported for that."""
        for heading, section in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, entry.help) for name, entry in section.items()])

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Names of commands, without importing them."""
        return [
            click.shell_completion.CompletionItem(name, help=entry.help)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tidemill")
def commands() -> None:
    """Tidemill runs workflows durably: DAGs of tasks that survive every crash.

    Commands speak to the server that --server, TIDEMILL_SERVER or the current context names; else
    to whoever works on the store here, or to the store itself. It is .tidemill/tidemill.db in the
    working folder, unless --store, TIDEMILL_STORE or tidemill.toml says otherwise.

    \b
    tidemill run flow.yaml                 # to its end, right here
    tidemill up                            # serve, then in another terminal:
    tidemill start flow.yaml --wait
    tidemill watch latest
    """


def main() -> None:
    """Run one command. Exit codes: 0 done, 1 the run failed, 2 refused, 130 interrupted."""
    # What gRPC's C library prints by itself is neither one line nor for people; Tidemill says it.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(exit_code())


def exit_code(arguments: Sequence[str] | None = None) -> int:
    """Run one command and say how it ended; what went wrong is told on standard error."""
    try:
        code = commands.main(
            arguments, standalone_mode=False, prog_name="tidemill", color=wants_colour()
        )
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.NoSuchOption as error:
        _with_close_names(error).show()
        return REFUSED
    except click.ClickException as error:
        error.show()
        return REFUSED
    except TidemillError as error:
        _explain(error)
        return FAILED if isinstance(error, Unavailable) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Somebody closed the pipe: `tidemill runs | head` is no error.
        sys.stderr.close()
        return FAILED
    except OSError as error:
        click.echo(f"error: {error}", err=True)
        return REFUSED
    return code if isinstance(code, int) else 0


def _with_close_names(error: click.NoSuchOption) -> click.NoSuchOption:
    """The same error with those names alone that are close without the dashes of all."""
    import difflib

    names = {name.lstrip("-"): name for name in error.possibilities or ()}
    close = difflib.get_close_matches(error.option_name.lstrip("-"), names, cutoff=0.65)
    return click.NoSuchOption(
        error.option_name, error.message, [names[name] for name in close], error.ctx
    )


def _explain(error: TidemillError) -> None:
    from tidemill.cli.views.text import printable, printable_block

    if isinstance(error, InvalidWorkflow) and error.source:
        for problem in error.problems:
            click.echo(printable(_with_file(error.source, problem)), err=True)
    elif isinstance(error, InvalidInput):
        for problem in error.problems:
            click.echo(f"error: {printable(str(problem))}", err=True)
    else:
        click.echo(f"error: {printable_block(str(error))}", err=True)
    if isinstance(error, Unauthenticated):
        click.echo("log in with `tidemill login`, or set TIDEMILL_API_KEY", err=True)


def _with_file(source: str, problem: Problem) -> str:
    """`flow.yaml:4: tasks[1].id: …`, which terminals and editors turn into a link."""
    if problem.path.startswith("--"):
        return f"error: {problem}"
    file = source.partition(".py:")[0] + ".py" if ".py:" in source else source
    place = file if problem.line is None else f"{file}:{problem.line}"
    path = "" if problem.path in {"", source, file} else f"{problem.path}: "
    return f"{place}: {path}{problem.message}"
