"""Python files as the command line reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.cli.describe import load_definition, load_definitions
from tidemill.cli.print import print_command
from tidemill.domain.errors import InvalidWorkflow
from tidemill.sdk.files import load_file

HEAD = "from tidemill import task, workflow\n\n"
TASK = "@task\ndef one(value: int = 1) -> int:\n    return value\n\n"
FLOW = "@workflow\ndef {name}() -> int:\n    return one()\n\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_only_workflow_of_a_file_is_found(folder: Path) -> None:
    (folder / "flow.py").write_text(HEAD + TASK + FLOW.format(name="nightly"))

    loaded = load_definition("flow.py")

    assert loaded.workflow.name == "nightly"
    assert loaded.imports == (str(folder / "flow.py"),)


def test_every_workflow_of_a_file_or_module_is_deployed(folder: Path) -> None:
    (folder / "flows.py").write_text(HEAD + TASK + FLOW.format(name="a") + FLOW.format(name="b"))

    names = [
        [each.workflow.name for each in load_definitions(source)]
        for source in ("flows.py", "flows", "flows:b")
    ]

    assert names == [["a", "b"], ["a", "b"], ["b"]]


def test_workers_import_the_modules_of_all_tasks(folder: Path) -> None:
    (folder / "steps.py").write_text(HEAD + TASK)
    text = "from tidemill import workflow\nfrom steps import one\n\n" + FLOW.format(name="flow")
    (folder / "flow.py").write_text(text)

    assert load_definition("flow.py").imports == (str(folder / "flow.py"), "steps")


def test_a_workflow_that_was_imported_belongs_to_its_own_module(folder: Path) -> None:
    (folder / "inner.py").write_text(HEAD + TASK + FLOW.format(name="inner"))
    text = "from tidemill import workflow\nfrom inner import inner, one\n\n"
    (folder / "outer.py").write_text(text + FLOW.format(name="outer"))

    assert [each.workflow.name for each in load_definitions("outer.py")] == ["outer"]


def test_a_mistake_has_the_line_of_the_file(folder: Path) -> None:
    text = HEAD + TASK + "@workflow\ndef flow() -> int:\n    return one('x')\n"
    (folder / "flow.py").write_text(text)

    with pytest.raises(InvalidWorkflow) as caught:
        load_definition("flow.py")

    assert caught.value.source == "flow.py"
    assert [(each.path, each.line) for each in caught.value.problems] == [("one.value", 9)]


def test_a_file_without_a_workflow_says_what_to_do(folder: Path) -> None:
    (folder / "flow.py").write_text(HEAD + TASK)

    with pytest.raises(
        InvalidWorkflow, match="has no workflow: decorate a function with @workflow"
    ):
        load_definitions("flow.py")


def test_what_is_printed_is_a_workflow_file_beside_the_code(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "flow.py").write_text(HEAD + TASK + FLOW.format(name="flow"))

    print_command.main(["flow.py"], standalone_mode=False)
    (folder / "flow.yaml").write_text(capfd.readouterr().out)

    loaded = load_file(folder / "flow.yaml")
    assert loaded.workflow == load_definition("flow.py").workflow
    assert loaded.imports == (str(folder / "flow.py"),)


def test_it_is_printed_as_json_too(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "flow.py").write_text(HEAD + TASK + FLOW.format(name="flow"))

    print_command.main(["flow.py", "--json"], standalone_mode=False)
    (folder / "flow.json").write_text(capfd.readouterr().out)

    assert load_file(folder / "flow.json").workflow == load_definition("flow.py").workflow


def test_a_file_of_a_package_is_named_by_its_module(folder: Path) -> None:
    (folder / "parcel" / "inner").mkdir(parents=True)
    (folder / "parcel" / "__init__.py").touch()
    (folder / "parcel" / "inner" / "__init__.py").touch()
    (folder / "parcel" / "inner" / "steps.py").write_text(HEAD + TASK)
    text = "from tidemill import workflow\nfrom .steps import one\n\n" + FLOW.format(name="flow")
    (folder / "parcel" / "inner" / "flow.py").write_text(text)

    with pytest.raises(InvalidWorkflow, match=r"name it parcel\.inner\.flow, in the folder above"):
        load_definition("parcel/inner/flow.py")

    assert load_definition("parcel.inner.flow:flow").workflow.name == "flow"
