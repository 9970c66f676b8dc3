"""Workflows written in Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.domain.errors import InvalidWorkflow
from tidemill.sdk.files import load_file

ONE = """\
from tidemill.domain.workflow import TaskSpec, Workflow

flow = Workflow(name="hello", tasks=(TaskSpec(id="a", executor="noop"),))
plain = {"name": "plain", "tasks": [{"id": "a", "executor": "noop"}]}
number = 5
"""


@pytest.fixture(autouse=True)
def _forget_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def written(folder: Path, text: str, name: str = "tide_flow.py") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def complaint(name: str) -> str:
    with pytest.raises(InvalidWorkflow) as refused:
        load_file(name)
    return str(refused.value)


def test_the_only_workflow_of_a_file_needs_no_name(tmp_path: Path) -> None:
    path = written(tmp_path, ONE)

    loaded = load_file(path)

    assert loaded.workflow.name == "hello"
    assert loaded.imports == (path,)


def test_a_workflow_or_a_dict_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, ONE)

    assert load_file(f"{path}:flow").workflow.name == "hello"
    assert load_file(f"{path}:plain").workflow.name == "plain"


def test_a_module_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, ONE)
    monkeypatch.chdir(tmp_path)

    loaded = load_file("tide_flow:plain")
    again = load_file("tide_flow:")

    assert (loaded.workflow.name, again.workflow.name) == ("plain", "hello")
    assert loaded.imports == ("tide_flow",)


def test_a_file_can_import_its_neighbours(tmp_path: Path) -> None:
    written(tmp_path, ONE, "tide_neighbour.py")
    path = written(tmp_path, "from tide_neighbour import flow\n")

    assert load_file(path).workflow.name == "hello"


def test_a_workflow_in_python_is_checked(tmp_path: Path) -> None:
    path = written(tmp_path, "flow = {'name': 'x'}\n")

    assert complaint(f"{path}:flow") == "tasks: is required"


@pytest.mark.parametrize(
    ("text", "suffix", "message"),
    [
        (ONE, ":flwo", 'the module has no "flwo", did you mean "flow"?'),
        (ONE, ":number", "number is of type int, not a workflow or a dict"),
        (ONE + "second = flow\n", "", "the module has several workflows, add :flow or :second"),
        ("x = 1\n", "", "the module has no workflow: decorate a function with @workflow"),
    ],
)
def test_a_wrong_name_is_refused(tmp_path: Path, text: str, suffix: str, message: str) -> None:
    name = written(tmp_path, text) + suffix

    assert complaint(name) == f"{name}: {message}"


def test_an_error_in_the_file_names_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "def fail():\n    return 1 / 0\n\nfail()\n")

    assert complaint(path) == (
        f"line 2: {path}: cannot be imported: ZeroDivisionError: division by zero"
    )
    assert "tide_flow" not in sys.modules


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "\nif x\n")

    assert complaint(path) == (
        f"line 2: {path}: cannot be imported: SyntaxError: expected ':' (tide_flow.py, line 2)"
    )


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nope.py"

    assert (
        complaint(str(path))
        == f"{path}: there is no such file, look at the spelling and the folder"
    )


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, ONE, "json.py")

    assert complaint(path) == f'{path}: the module name "json" is taken, rename it'


def test_a_module_that_is_not_there_is_refused() -> None:
    assert complaint("tide_nowhere.flows:x") == (
        "tide_nowhere.flows:x: there is no module tide_nowhere.flows: run from its folder, or "
        "install it"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import tide_missing\n", "ModuleNotFoundError: No module named 'tide_missing'"),
        ("raise OSError('disk')\n", "OSError: disk"),
    ],
)
def test_a_module_that_fails_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    written(tmp_path, text)
    monkeypatch.chdir(tmp_path)

    assert complaint("tide_flow:x") == f"tide_flow:x: cannot be imported: {reason}"
