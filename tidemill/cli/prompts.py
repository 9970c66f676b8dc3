"""What is asked for: secrets, which others could read on the command line, and leave to go on."""

from __future__ import annotations

import sys

import click

from tidemill.domain.errors import InvalidInput, Problem


def is_asked() -> bool:
    """Whether somebody can be asked; a pipe says it without a question."""
    return sys.stdin.isatty()


def line_of_stdin() -> str:
    """One line from a pipe, without its end."""
    return sys.stdin.readline().rstrip("\r\n")


def text_of_stdin(words: str) -> str:
    """All that a pipe holds, without the end of its last line."""
    return _something(sys.stdin.read().removesuffix("\n").removesuffix("\r"), words)


def shown(words: str) -> str:
    """Something that may be seen: asked for, or the next line of a pipe."""
    if not is_asked():
        return _something(line_of_stdin(), words)
    said: str = click.prompt(words, err=True)
    return said


def hidden(words: str, *, twice: bool = False) -> str:
    """Something secret: asked for without an echo, or the next line of a pipe."""
    if not is_asked():
        return _something(line_of_stdin(), words)
    said: str = click.prompt(words, hide_input=True, err=True, confirmation_prompt=twice)
    return said


def password(*, from_stdin: bool = False, twice: bool = False) -> str:
    """A password: asked for without an echo, or the next line of standard input."""
    return line_of_stdin() if from_stdin else hidden("password", twice=twice)


def confirm(words: str, *, yes: bool) -> None:
    """Go on when somebody agrees, or has done so with --yes; a pipe cannot be asked."""
    if yes:
        return
    if not is_asked():
        message = f"{words} Standard input is no terminal, so nobody can be asked: give --yes"
        raise InvalidInput([Problem(path="", message=message, code="REQUIRED")])
    click.confirm(words, abort=True, err=True)


def _something(text: str, words: str) -> str:
    if not text:
        message = "standard input is no terminal and has no line for it: pipe it in"
        raise InvalidInput([Problem(path=words, message=message, code="REQUIRED")])
    return text
