"""docs/identity.md says what the code does: its table of roles, and the tests that it names."""

from __future__ import annotations

import re

from tests.style.sources import ROOT
from tidemill.domain.permissions import EVERYWHERE, GRANTS, Permission, Role

TEXT = (ROOT / "docs" / "identity.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
POINTS = {*range(1, 19), 29, 42, 43}


def row_of(permission: Permission) -> str:
    """A line of the table of roles."""
    held = "everywhere" if permission in EVERYWHERE else "yes"
    cells = [held if permission in GRANTS[role] else "" for role in Role]
    return f"| `{permission}` |" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def test_the_table_of_roles_is_that_of_the_code() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| `") and ":" in line[:24]]

    assert rows == [row_of(permission) for permission in Permission]


def test_every_point_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", TEXT, re.MULTILINE)

    assert {int(number) for number, _, _ in rows} == POINTS
    for _, _, cell in rows:
        for path, name in NAMED.findall(cell):
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
