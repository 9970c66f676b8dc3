"""What the documentation prints is what works."""

from __future__ import annotations

import re
from pathlib import Path

from tidemill.authoring.options import TaskOptions, WorkflowOptions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "authoring.md").read_text()


def test_the_first_program_of_the_page_is_the_example_that_is_tested() -> None:
    first = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)

    assert first is not None
    assert first[1] == (ROOT / "examples" / "newcomer.py").read_text()


def test_the_page_names_every_option() -> None:
    named = set(re.findall(r"`(\w+)[`=]", PAGE)) | {"id"}

    assert set(TaskOptions.__annotations__) | set(WorkflowOptions.__annotations__) <= named
