"""Words for a person or a pipe, which may close early: a run goes on when nobody listens."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import Any

import click
from click.core import ParameterSource

from tidemill.domain.urls import mask_url


def say(text: str = "", *, err: bool = False) -> None:
    """Print one line. Once the other side has closed, everything further goes nowhere."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (sys.stderr if err else sys.stdout).fileno())
        os.close(nowhere)


def answer(value: Any, words: str, as_json: bool) -> None:
    """Print what a command has done: the value for programs, the words for people."""
    if not as_json:
        say(words)
        return
    from tidemill.cli.views.listing import print_json

    print_json(value)


def tell(text: str) -> None:
    """Print one line for people, beside what the command is asked for."""
    say(f"tidemill: {text}", err=True)


def command(words: str) -> str:
    """A command to type next, on the store that was given for this one, without its password."""
    context = click.get_current_context(silent=True)
    if context is None:
        return f"tidemill {words}"
    options = [
        f" --{name} {shlex.quote(mask_url(context.params[name]))}"
        for name in ("server", "context", "namespace", "store", "config")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    return f"tidemill {words}{''.join(options)}"


def width() -> int | None:
    """How wide the terminal is; None for pipes and files, which take lines of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wants_colour() -> bool | None:
    """False when the environment asks for none, None to let the terminal decide."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if refused else None
