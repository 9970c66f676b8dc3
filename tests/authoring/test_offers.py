"""What a worker that imports decorated functions can run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.worker.library import UnknownFunction, load_library

STEPS = (
    "from tidemill import task\n\n@task\ndef one():\n    return 1\n\ndef plain():\n    return 2\n"
)
MORE = "from tidemill import task\n\n@task(retries=1)\nasync def two():\n    return 2\n"
FLOW = """
from tidemill import task, workflow
import more_under_test
from steps_under_test import one

@task
def three(value):
    return value

fast = three.options(queue="fast")

@workflow
def flow():
    return [one(), more_under_test.two(), three(3)]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    texts = {"steps_under_test": STEPS, "more_under_test": MORE, "flow_under_test": FLOW}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in texts:
        sys.modules.pop(name, None)


def test_the_tasks_that_a_file_has_imported_are_offered_too(folder: Path) -> None:
    library = load_library([str(folder / "flow_under_test.py")])

    assert {"more_under_test:two", "steps_under_test:one", "flow_under_test:three"} <= {
        *library.names()
    }
    assert library.find("steps_under_test:one")() == 1


def test_a_workflow_is_no_task(folder: Path) -> None:
    library = load_library([str(folder / "flow_under_test.py")])

    assert "flow_under_test:flow" not in library.names()
    with pytest.raises(UnknownFunction, match="not a function"):
        library.find("flow_under_test:flow")


def test_modules_without_tasks_stay_out_of_reach(folder: Path) -> None:
    library = load_library([str(folder / "flow_under_test.py")])

    with pytest.raises(UnknownFunction, match="the module tidemill is not imported"):
        library.find("tidemill:context")
