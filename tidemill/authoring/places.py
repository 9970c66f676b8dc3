"""Where in user code something was written: problems of a definition name the line."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import NoReturn

from tidemill.domain.errors import InvalidWorkflow, Problem

_HERE = str(Path(__file__).parent) + "/"


def line_of_call() -> int | None:
    """The line of user code that is being executed right now."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None


def problem(path: str, message: str, code: str) -> Problem:
    """A problem with the line that calls right now."""
    return Problem(path=path, message=message, code=code, line=line_of_call())


def refuse(path: str, message: str, code: str) -> NoReturn:
    """End the description of the workflow here: nothing sensible can follow."""
    raise InvalidWorkflow([problem(path, message, code)])


__all__ = ["line_of_call", "problem", "refuse"]
