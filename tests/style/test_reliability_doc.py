"""The table of docs/reliability.md: every fault is there, and every test that it names."""

from __future__ import annotations

import ast
import re

from tests.style.sources import ROOT, python_files

FAULTS = range(1, 46)
LATER = {21, 22}
"""Faults of schedules, which do not exist yet."""

ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]*) \|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
TABLE = {
    int(number): NAMED.findall(cell)
    for number, cell in ROW.findall((ROOT / "docs" / "reliability.md").read_text())
}


def test_every_fault_is_listed() -> None:
    assert sorted(TABLE) == list(FAULTS)


def test_every_fault_has_a_test_that_bears_its_number() -> None:
    numbered = {
        number
        for number, tests in TABLE.items()
        if any(name.startswith(f"test_fault_{number:02}_") for _, name in tests)
    }

    assert set(FAULTS) - numbered == LATER


def test_every_test_named_in_the_table_exists() -> None:
    there = {
        (source.path, node.name)
        for source in python_files("tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named = {tuple(test) for tests in TABLE.values() for test in tests}

    assert sorted(named - there) == []
