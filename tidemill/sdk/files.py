"""Reading a workflow from a file or a Python module, with the line of every problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.domain.problems import parse_path, show
from tidemill.domain.validation import check_workflow
from tidemill.domain.workflow import Workflow
from tidemill.sdk.documents import Document, DocumentBuilder, Event, refuse
from tidemill.sdk.json_events import json_events
from tidemill.sdk.python_source import (
    PythonSource,
    load_all_python,
    load_python,
    names_python,
)
from tidemill.sdk.yaml_events import yaml_events

FILE_BYTES_MAX = 10_000_000
IMPORTS_MAX = 100

_READERS: Mapping[str, Callable[[str], Iterator[Event]]] = {
    ".yaml": yaml_events,
    ".yml": yaml_events,
    ".json": json_events,
}
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FILE_ONLY = ("imports", "$schema")


FurtherCheck: TypeAlias = Callable[[Any, Mapping[str, str]], Iterable[Problem]]
"""Finds more problems in a definition as it was read, right or wrong, whose imports are given by
their place: `imports[0]` and the module or absolute path that stands there."""


class LoadedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow, and what a worker has to import to run it: module names and paths of files."""

    workflow: Workflow
    imports: tuple[str, ...]
    path: str


def load_file(path: str | Path, further: FurtherCheck = lambda *_: ()) -> LoadedFile:
    """Read `flow.yaml`, `flow.json`, `flow.py:name` or `module:name`.

    Raises InvalidWorkflow with every problem, those that `further` finds in a YAML or JSON file
    among them. Python files and modules are executed.
    """
    name = str(path)
    try:
        return _load(name, further)
    except InvalidWorkflow as error:
        raise InvalidWorkflow(error.problems, source=name) from error


def _load(name: str, further: FurtherCheck) -> LoadedFile:
    if names_python(name):
        return _from_python(name, load_python(name))
    file = Path(name)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise _refuse_file(
            name, "is no workflow file: give a .yaml, .yml or .json file, flow.py or module:name"
        )
    document = DocumentBuilder().build(reader(_read(file)))
    return _loaded(file, document, further)


def load_files(path: str | Path) -> list[LoadedFile]:
    """Like `load_file`, and every workflow of a Python file or module when none of it is named."""
    name = str(path)
    if not names_python(name):
        return [load_file(name)]
    try:
        return [_from_python(name, source) for source in load_all_python(name)]
    except InvalidWorkflow as error:
        raise InvalidWorkflow(error.problems, source=name) from error


def _from_python(name: str, source: PythonSource) -> LoadedFile:
    workflow = check_workflow(source.definition)
    return LoadedFile(workflow=workflow, imports=source.imports, path=name)


def _refuse_file(name: str, message: str, code: str = "BAD_FILE") -> InvalidWorkflow:
    return InvalidWorkflow([Problem(path=name, message=message, code=code)])


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError as error:
        text = "there is no such file, look at the spelling and the folder"
        raise _refuse_file(str(file), text, "NOT_FOUND") from error
    except IsADirectoryError as error:
        raise _refuse_file(str(file), "is a folder, name the file in it") from error
    except OSError as error:
        raise _refuse_file(str(file), f"cannot be read: {error.strerror}") from error
    if len(data) > FILE_BYTES_MAX:
        text = f"is larger than {FILE_BYTES_MAX:,} bytes, split the workflow"
        raise _refuse_file(str(file), text, "TOO_LARGE")
    return _decoded(data)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse("is not UTF-8 text, save the file as UTF-8", "SYNTAX", line) from error


def _loaded(file: Path, document: Document, further: FurtherCheck) -> LoadedFile:
    value, marks = document
    if value is None:
        text = 'is empty: a workflow has at least "name" and "tasks"'
        raise refuse(text, "REQUIRED", marks.line)
    imports: dict[str, str] = {}
    problems: list[Problem] = []
    workflow: Workflow | None = None
    definition = value
    if isinstance(value, dict):
        definition = {key: part for key, part in value.items() if key not in _FILE_ONLY}
        problems = list(_import_problems(file, value.get("imports", []), imports))
    try:
        workflow = check_workflow(definition, in_file=True)
    except InvalidWorkflow as error:
        problems.extend(error.problems)
    problems.extend(further(definition, imports))
    if workflow is None or problems:
        raise InvalidWorkflow(_with_lines(problems, document))
    return LoadedFile(workflow=workflow, imports=tuple(imports.values()), path=str(file))


def _with_lines(problems: list[Problem], document: Document) -> list[Problem]:
    """The problems in the order of the file; the line that counts the rest stays last."""
    marked = [
        msgspec.structs.replace(problem, line=_line_of(problem.path, document))
        for problem in problems
        if problem.code != "MORE_PROBLEMS"
    ]
    rest = [problem for problem in problems if problem.code == "MORE_PROBLEMS"]
    return sorted(marked, key=lambda problem: problem.line or 0) + rest


def _line_of(path: str, document: Document) -> int | None:
    if path.startswith("--"):
        return None  # an option of the command line
    return document.marks.line_of(parse_path(path))


def _import_problems(file: Path, given: Any, imports: dict[str, str]) -> Iterator[Problem]:
    """Check what the file wants imported, and gather it with paths made absolute."""
    if not isinstance(given, list) or len(given) > IMPORTS_MAX:
        message = f"must be a list of at most {IMPORTS_MAX} modules or files, like [orders.py]"
        yield Problem(path="imports", message=message, code="WRONG_TYPE")
        return
    for index, name in enumerate(given):
        complaint = _import_complaint(file, name)
        if complaint:
            yield Problem(path=f"imports[{index}]", message=complaint, code="BAD_IMPORT")
        else:
            imports[f"imports[{index}]"] = _absolute(file, name)


def _import_complaint(file: Path, name: Any) -> str | None:
    if isinstance(name, str) and name.endswith(".py"):
        if (file.parent / name).is_file():
            return None
        return f"there is no file {show(name)} beside this one"
    if isinstance(name, str) and _MODULE.fullmatch(name):
        return None
    return f"{show(name)} is neither a module, like shop.orders, nor a file, like orders.py"


def _absolute(file: Path, name: str) -> str:
    return str((file.parent / name).resolve()) if name.endswith(".py") else name


__all__ = ["FurtherCheck", "LoadedFile", "load_file", "load_files"]
