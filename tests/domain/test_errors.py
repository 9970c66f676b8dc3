"""The error tree: what programs read from errors that are raised outside the domain."""

from __future__ import annotations

import pytest

from tidemill.domain.errors import (
    CommitUnknown,
    Conflict,
    InvalidInput,
    MalformedRun,
    Problem,
    RateLimited,
    StoreOwned,
    TidemillError,
    Unavailable,
)


def test_a_second_owner_learns_who_the_first_one_is() -> None:
    error = StoreOwned("the store is owned by process 42", pid=42)

    assert (error.pid, str(error)) == (42, "the store is owned by process 42")
    assert isinstance(error, Conflict)


def test_a_malformed_run_is_named() -> None:
    error = MalformedRun("r1", "its definition is missing")

    assert (error.run_id, str(error)) == ("r1", "run r1: its definition is missing")


def test_an_invalid_input_lists_every_problem() -> None:
    first = Problem(path="tasks", message="is required", code="REQUIRED", line=3)
    second = Problem(path="", message="is not JSON", code="SYNTAX")

    error = InvalidInput([first, second])

    assert str(error) == "line 3: tasks: is required\nis not JSON"
    assert error.problems == (first, second)


def test_an_input_without_problems_is_not_invalid() -> None:
    with pytest.raises(AssertionError, match="at least one problem"):
        InvalidInput([])


def test_who_asks_too_often_learns_when_to_ask_again() -> None:
    error = RateLimited("too many requests", retry_seconds=1.5)

    assert (error.retry_seconds, error.code) == (1.5, "RATE_LIMITED")
    assert str(error) == "too many requests"


def test_an_unknown_commit_may_be_tried_again() -> None:
    assert issubclass(CommitUnknown, Unavailable)
    assert issubclass(Unavailable, TidemillError)
