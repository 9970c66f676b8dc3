"""The small examples: each is valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.sdk.files import load_file

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid(path: Path) -> None:
    assert load_file(path).workflow.name == path.stem
