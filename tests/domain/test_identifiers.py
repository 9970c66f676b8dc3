"""Keys and tokens."""

from __future__ import annotations

from tests.builders import a_run_id, a_task
from tidemill.domain.identifiers import TaskKey, Token


def test_a_token_is_for_one_grant_of_one_task() -> None:
    run_id = a_run_id()
    task = a_task(run_id=run_id, position=3, epoch=5)

    assert task.token == Token(run_id, 3, 5)
    assert task.token.key == task.key == TaskKey(run_id, 3)


def test_keys_sort_by_run_then_position() -> None:
    first, second = a_run_id(), a_run_id()

    keys = [TaskKey(second, 0), TaskKey(first, 10), TaskKey(first, 9)]

    assert sorted(keys) == [TaskKey(first, 9), TaskKey(first, 10), TaskKey(second, 0)]
