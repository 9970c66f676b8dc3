"""Paths and lists of problems."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.problems import did_you_mean, format_path, listed, parse_path, show

PARTS = st.lists(st.integers(0, 100_000) | st.text(st.characters(exclude_categories=["Cs"])))


@given(PARTS)
def test_a_path_is_read_back_as_it_was_written(parts: list[str | int]) -> None:
    assert parse_path(format_path(parts)) == tuple(parts)


def test_a_path_reads_like_the_document() -> None:
    path = format_path(("tasks", 3, "inputs", "the order", "result"))

    assert path == 'tasks[3].inputs["the order"].result'


def test_a_long_value_is_shown_in_part() -> None:
    assert show("x" * 100) == '"' + "x" * 59 + "…"


def test_the_closest_word_is_suggested_whatever_its_case() -> None:
    assert did_you_mean("Taks", ["name", "tasks"]) == ', did you mean "tasks"?'
    assert did_you_mean("zebra", ["name", "tasks"]) == ""


def test_words_are_listed_as_in_a_sentence() -> None:
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"])] == ["", "a", "a, b or c"]
