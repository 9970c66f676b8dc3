"""Definitions that this machine can run: read, checked and rehearsed, all problems at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidemill.cli.describe import load_definition
from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.runtime.rehearsal import rehearse
from tidemill.sdk.files import LoadedFile, load_file
from tidemill.sdk.python_source import names_python


def load_rehearsed(name: str, imports: Iterable[str] = ()) -> LoadedFile:
    """Like `load_definition`; refuses also what no worker started here could run.

    `imports` are those of the command line: the file's own are added to them.
    """
    more = {f"--import {given}": given for given in imports}

    def further(definition: Any, own: Mapping[str, str]) -> tuple[Problem, ...]:
        return rehearse(definition, {**own, **more})

    if not names_python(name):
        return load_file(name, further)
    loaded = load_definition(name)
    definition = msgspec.to_builtins(loaded.workflow)
    first, *others = loaded.imports
    if problems := further(definition, {name: first} | {each: each for each in others}):
        raise InvalidWorkflow(problems, source=name)
    return loaded
