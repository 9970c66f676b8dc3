"""`python -m tidemill.cli.describe FILE FD`: reads a workflow written in Python, and tells it.

Python files are user code, and user code does not run in the process that owns the store: a child
process imports the file and writes the definition, as data, to a file that only the two have.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TypeAlias

import msgspec

from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.sdk.files import LoadedFile, load_file
from tidemill.sdk.python_source import names_python

DESCRIBE_SECONDS_MAX = 60.0


class Described(msgspec.Struct, frozen=True, tag="described"):
    """What the child found."""

    loaded: LoadedFile


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """What the child found wrong."""

    problems: tuple[Problem, ...]


Finding: TypeAlias = Described | Refused
_findings: msgspec.json.Decoder[Finding] = msgspec.json.Decoder(Finding)


def load_definition(name: str) -> LoadedFile:
    """Like `load_file`, without running any user code in this process."""
    if not names_python(name):
        return load_file(name)
    finding = _findings.decode(_ask_child(name))
    if isinstance(finding, Refused):
        raise InvalidWorkflow(finding.problems, source=name)
    return finding.loaded


def _ask_child(name: str) -> bytes:
    with tempfile.TemporaryFile() as answer:
        descriptor = answer.fileno()
        try:
            status = subprocess.run(  # noqa: S603 - our own module, the name as an argument
                [sys.executable, "-m", "tidemill.cli.describe", name, str(descriptor)],
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
    name, descriptor = sys.argv[1], int(sys.argv[2])
    finding: Finding
    try:
        finding = Described(load_file(name))
    except InvalidWorkflow as error:
        finding = Refused(error.problems)
    with os.fdopen(descriptor, "wb") as answer:
        answer.write(msgspec.json.encode(finding))


if __name__ == "__main__":
    _main()
