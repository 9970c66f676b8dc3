"""Words for a person or a pipe, which may close early: a run goes on when nobody listens."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

import click
from click.core import ParameterSource


def say(text: str = "", *, err: bool = False) -> None:
    """Print one line. Once the other side has closed, everything further goes nowhere."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (sys.stderr if err else sys.stdout).fileno())
        os.close(nowhere)


def command(words: str) -> str:
    """A command to type next, on the store that was given for this one."""
    context = click.get_current_context(silent=True)
    given = context is not None and context.get_parameter_source("store")
    if context is None or given is not ParameterSource.COMMANDLINE:
        return f"tidemill {words}"
    return f"tidemill {words} --store {shlex.quote(context.params['store'])}"


def width() -> int | None:
    """How wide the terminal is; None for pipes and files, which take lines of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wants_colour() -> bool | None:
    """False when the environment asks for none, None to let the terminal decide."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if refused else None
