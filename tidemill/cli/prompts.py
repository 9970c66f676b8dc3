"""What is typed in and must not be seen: on the command line, others could read it."""

from __future__ import annotations

import sys

import click


def line_of_stdin() -> str:
    """One line from a pipe, without its end."""
    return sys.stdin.readline().rstrip("\r\n")


def password(*, from_stdin: bool = False, twice: bool = False) -> str:
    """A password: asked for without an echo, or the first line of standard input."""
    if from_stdin:
        return line_of_stdin()
    said: str = click.prompt("password", hide_input=True, err=True, confirmation_prompt=twice)
    return said
