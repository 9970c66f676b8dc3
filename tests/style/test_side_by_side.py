"""Tests run in several processes: what shares a server stays together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.side_by_side import WHOLE_FILES, unit_of

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/a/test_buses.py::test_it[kafka]", "kafka"),
        ("tests/a/test_kafka_faults.py::test_it", "kafka"),
        ("tests/a/test_buses.py::test_it[redis]", "tests/a/test_buses.py::test_it[redis]"),
        ("tests/a/test_newcomer.py::test_it", "tests/a/test_newcomer.py"),
    ],
)
def test_a_test_goes_where_its_server_is(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


def test_files_with_a_server_of_their_own_stay_whole() -> None:
    sharing = {
        path.name
        for path in TESTS.rglob("test_*.py")
        if '@pytest.fixture(scope="module")\n' in path.read_text() and path != Path(__file__)
    }

    assert {name for name in sharing if "kafka" not in name} == set(WHOLE_FILES)
