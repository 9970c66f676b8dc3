"""Definitions that this machine can run: read, checked and rehearsed, all problems at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidemill.cli.describe import load_definition, load_definitions
from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.runtime.rehearsal import rehearse
from tidemill.sdk.files import LoadedFile, load_file
from tidemill.sdk.python_source import names_python


def load_rehearsed(name: str, imports: Iterable[str] = ()) -> LoadedFile:
    """Like `load_definition`; refuses also what no worker started here could run.

    `imports` are those of the command line: the file's own are added to them.
    """
    more = _given(imports)
    if not names_python(name):
        return load_file(name, lambda definition, own: rehearse(definition, {**own, **more}))
    loaded = load_definition(name)
    if problems := _problems(loaded, more):
        raise InvalidWorkflow(problems, source=name)
    return loaded


def load_all_rehearsed(name: str, imports: Iterable[str] = ()) -> tuple[LoadedFile, ...]:
    """The same for every workflow of a Python file, when none of it is named."""
    if not names_python(name):
        return (load_rehearsed(name, imports),)
    more, found = _given(imports), load_definitions(name)
    problems = [
        _named(problem, loaded.workflow.name) if len(found) > 1 else problem
        for loaded in found
        for problem in _problems(loaded, more)
    ]
    if problems:
        raise InvalidWorkflow(problems, source=name)
    return found


def _given(imports: Iterable[str]) -> dict[str, str]:
    return {f"--import {given}": given for given in imports}


def _problems(loaded: LoadedFile, more: Mapping[str, str]) -> tuple[Problem, ...]:
    """What is wrong with a definition in Python, which is right as far as it goes."""
    definition: Any = msgspec.to_builtins(loaded.workflow)
    first, *others = loaded.imports
    own = {loaded.path: first} | {each: each for each in others}
    return rehearse(definition, {**own, **more})


def _named(problem: Problem, workflow: str) -> Problem:
    """Paths begin anew in every workflow of a file."""
    return msgspec.structs.replace(problem, path=f"{workflow}: {problem.path}")
