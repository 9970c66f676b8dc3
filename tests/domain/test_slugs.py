"""Names made from whatever people call things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.slugs import fold, is_name, slug, slugs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fetch-order", "fetch-order"),
        ("Fetch Order!", "Fetch-Order"),
        ("über 9000 €", "uber-9000"),
        ("  a/b//c ", "a-b-c"),
        ("_hidden", "hidden"),
        ("日本", "task"),
        ("", "task"),
        ("x" * 129, "x" * 120),
    ],
)
def test_a_slug_reads_like_the_text(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_what_would_look_alike_is_told_apart_by_numbers() -> None:
    assert slugs(["a", "A", "a", "b_c", "b.c", "日", "本"]) == [
        *("a", "A-2", "a-3"),
        *("b_c", "b.c-2", "task", "task-2"),
    ]
    assert slugs(["a"], taken=["A"]) == ["a-2"]


@given(st.lists(st.text(max_size=200), max_size=20))
def test_slugs_are_names_and_no_two_look_alike(texts: list[str]) -> None:
    found = slugs(texts)

    assert all(is_name(name) for name in found)
    assert len({fold(name) for name in found}) == len(texts)


@given(st.lists(st.from_regex(r"[a-z0-9]{1,10}", fullmatch=True), unique=True, max_size=20))
def test_names_that_differ_stay_as_they_are(names: list[str]) -> None:
    assert slugs(names) == names
