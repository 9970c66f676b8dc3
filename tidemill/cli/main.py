"""The `tidemill` command. Each command is imported when it is asked for, to start fast."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping

import click

from tidemill import __version__
from tidemill.cli.output import wants_colour
from tidemill.domain.errors import (
    InvalidInput,
    InvalidWorkflow,
    Problem,
    TidemillError,
    Unavailable,
)

COMMANDS: Mapping[str, str] = {
    "run": "tidemill.cli.run:run",
    "resume": "tidemill.cli.resume:resume",
    "runs": "tidemill.cli.runs:runs",
    "show": "tidemill.cli.show:show",
    "dead": "tidemill.cli.dead:dead",
    "cancel": "tidemill.cli.cancel:cancel",
    "validate": "tidemill.cli.validate:validate",
    "up": "tidemill.cli.up:up",
    "start": "tidemill.cli.start:start",
    "scheduler": "tidemill.cli.scheduler:scheduler",
    "worker": "tidemill.cli.worker:worker",
    "notifier": "tidemill.cli.notifier:notifier",
    "migrate": "tidemill.cli.migrate:migrate",
    "health": "tidemill.cli.health:health",
    "config": "tidemill.cli.config:config",
    "conformance": "tidemill.cli.conformance:conformance",
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
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tidemill")
def commands() -> None:
    """Tidemill runs workflows durably: DAGs of tasks that survive every crash.

    State is kept in .tidemill/tidemill.db of the working folder, unless --store, the environment
    variable TIDEMILL_STORE or the file tidemill.toml says otherwise.
    """


def main() -> None:
    """Run one command. Exit codes: 0 done, 1 the run failed, 2 refused, 130 interrupted."""
    # What gRPC's C library prints by itself is neither one line nor for people; Tidemill says it.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        code = commands.main(standalone_mode=False, prog_name="tidemill", color=wants_colour())
    except click.exceptions.Abort:
        return INTERRUPTED
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


def _with_file(source: str, problem: Problem) -> str:
    """`flow.yaml:4: tasks[1].id: …`, which terminals and editors turn into a link."""
    if problem.path.startswith("--"):
        return f"error: {problem}"
    file = source.partition(".py:")[0] + ".py" if ".py:" in source else source
    place = file if problem.line is None else f"{file}:{problem.line}"
    path = "" if problem.path in {"", source, file} else f"{problem.path}: "
    return f"{place}: {path}{problem.message}"
