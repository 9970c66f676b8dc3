"""Words for a person or a pipe, which may close early: a run goes on when nobody listens."""

from __future__ import annotations

import os
import shutil
import sys

import click


def say(text: str = "", *, err: bool = False) -> None:
    """Print one line. Once the other side has closed, everything further goes nowhere."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (sys.stderr if err else sys.stdout).fileno())
        os.close(nowhere)


def width() -> int | None:
    """How wide the terminal is; None for pipes and files, which take lines of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wants_colour() -> bool | None:
    """False when the environment asks for none, None to let the terminal decide."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if refused else None
