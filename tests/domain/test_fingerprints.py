"""Errors that are alike have one fingerprint."""

from __future__ import annotations

import pytest

from tidemill.domain.fingerprints import fingerprint
from tidemill.domain.task_run import TaskError


def of(message: str, kind: str = "ValueError") -> str:
    return fingerprint(TaskError(type=kind, message=message))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 is late", "order 4711 is late"),
        ("no file 'a.txt' there", "no file 'b/c.txt' there"),
        ('key "x" is missing', 'key "yy" is missing'),
        (
            "run 01980000-0000-7000-8000-000000000001 is gone",
            "run 01980000-0000-7000-8000-0000000000ff is gone",
        ),
        ("object at 0x7f34a1b2c3d4", "object at 0x7f34a1b2aaaa"),
        ("boom", "  boom \nand a second line"),
        ("x" * 300, "x" * 400),
    ],
)
def test_what_changes_from_failure_to_failure_does_not_count(one: str, other: str) -> None:
    assert of(one) == of(other)


def test_type_and_words_count() -> None:
    assert len({of("boom"), of("bang"), of("boom", "KeyError"), fingerprint(None)}) == 4


def test_a_fingerprint_is_short_and_stays_the_same_from_release_to_release() -> None:
    assert of("order 17 is late") == "0922dc4b9698"
