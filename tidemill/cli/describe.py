"""`python -m tidemill.cli.describe FILE FD one|all`: reads workflows written in Python.

Python files are user code, and user code does not run in the process that owns the store: a child
process imports the file and writes the definitions, as data, to a file that only the two have.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.sdk.files import LoadedFile, load_file, load_files
from tidemill.sdk.python_source import names_python

DESCRIBE_SECONDS_MAX = 60.0


class Described(msgspec.Struct, frozen=True, tag="described"):
    """What the child found."""

    loaded: tuple[LoadedFile, ...]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """What the child found wrong."""

    problems: tuple[Problem, ...]


Finding: TypeAlias = Described | Refused
_findings: msgspec.json.Decoder[Finding] = msgspec.json.Decoder(Finding)


def load_definition(name: str) -> LoadedFile:
    """Like `load_file`, without running any user code in this process."""
    if not names_python(name):
        return load_file(name)
    [loaded] = _found(name, "one")
    return loaded


def load_definitions(name: str) -> tuple[LoadedFile, ...]:
    """The same for every workflow of a Python file or module, when none of it is named."""
    if not names_python(name) and is_module(name):
        name = f"{name}:"
    return _found(name, "all") if names_python(name) else (load_file(name),)


def is_module(name: str) -> bool:
    """Whether a name is that of a module, and not that of a file in the working folder."""
    return all(part.isidentifier() for part in name.split(".")) and not Path(name).exists()


def _found(name: str, which: str) -> tuple[LoadedFile, ...]:
    finding = _findings.decode(_ask_child(name, which))
    if isinstance(finding, Refused):
        # What is about the source as a whole need not name it twice.
        problems = [
            msgspec.structs.replace(each, path="") if each.path == name else each
            for each in finding.problems
        ]
        raise InvalidWorkflow(problems, source=name.removesuffix(":"))
    return finding.loaded


def _ask_child(name: str, which: str) -> bytes:
    with tempfile.TemporaryFile() as answer:
        descriptor = answer.fileno()
        try:
            status = subprocess.run(  # noqa: S603 - our own module, the name as an argument
                [sys.executable, "-m", "tidemill.cli.describe", name, str(descriptor), which],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                timeout=DESCRIBE_SECONDS_MAX,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise _unreadable(name, f"took more than {DESCRIBE_SECONDS_MAX:g} s") from None
        answer.seek(0)
        data = answer.read()
    if status != 0 or not data:
        raise _unreadable(name, f"ended the process with status {status}")
    return data


def _unreadable(name: str, what: str) -> InvalidWorkflow:
    return InvalidWorkflow([Problem(path=name, message=f"importing it {what}", code="BAD_IMPORT")])


def _main() -> None:
    name, descriptor, which = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    finding: Finding
    try:
        finding = Described(tuple(load_files(name)) if which == "all" else (load_file(name),))
    except InvalidWorkflow as error:
        finding = Refused(error.problems)
    with os.fdopen(descriptor, "wb") as answer:
        answer.write(msgspec.json.encode(finding))


if __name__ == "__main__":
    _main()
