"""The small examples: each is valid, down to the params of its executors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemill.sdk.files import load_file
from tidemill.worker.executor import problems_of
from tidemill.worker.executors.http import HttpParams
from tidemill.worker.executors.rehearsal import FlakyParams, NoParams, SleepParams
from tidemill.worker.executors.shell import ShellParams

PARAMS: dict[str, Any] = {
    "flaky": FlakyParams,
    "http": HttpParams,
    "noop": NoParams,
    "shell": ShellParams,
    "sleep": SleepParams,
}
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid(path: Path) -> None:
    assert load_file(path).workflow.name == path.stem


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_params_of_every_example_are_valid(path: Path) -> None:
    for task in load_file(path).workflow.tasks:
        assert problems_of(task.params, PARAMS[task.executor]) == []
