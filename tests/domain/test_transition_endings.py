"""The state machine of a task, rule by rule: parents, stops and replays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import NOON, a_task
from tests.domain.legal_moves import ERROR, SESSION
from tests.domain.plans import a_node
from tests.domain.task_moves import LATER, after, cancelling, failed, moved, running, tried
from tidemill.domain.errors import IllegalTransition
from tidemill.domain.events import (
    CancelConfirmed,
    Due,
    Event,
    Failed,
    Lost,
    ParentsEnded,
    Released,
    Reopened,
    Replayed,
    StopRequested,
    Succeeded,
)
from tidemill.domain.identifiers import SECOND
from tidemill.domain.task_run import ENDED, Reason, TaskRun, TaskState
from tidemill.domain.transitions import advance
from tidemill.domain.workflow import Timeouts

# Parents


def test_a_task_counts_its_parents_until_none_is_left() -> None:
    node = a_node(parents=4)
    task = a_task(state=TaskState.PENDING, waiting=4)

    counted = after(task, ParentsEnded((TaskState.FAILED, TaskState.SKIPPED)), node)

    assert (counted.state, counted.waiting) == (TaskState.PENDING, 2)
    assert (counted.failed, counted.skipped) == (1, 1)


@pytest.mark.parametrize(
    ("endings", "state"),
    [
        ((TaskState.SUCCEEDED, TaskState.SUCCEEDED), TaskState.READY),
        ((TaskState.SUCCEEDED, TaskState.SKIPPED), TaskState.SKIPPED),
        ((TaskState.FAILED, TaskState.SKIPPED), TaskState.UPSTREAM_FAILED),
    ],
)
def test_the_last_parent_decides(endings: tuple[TaskState, ...], state: TaskState) -> None:
    task = after(a_task(state=TaskState.PENDING, waiting=2), ParentsEnded(endings), a_node(2))

    assert (task.state, task.reason) == (state, None)


def test_a_task_becomes_ready_with_a_limit_on_its_wait() -> None:
    task = after(
        a_task(state=TaskState.PENDING),
        ParentsEnded(()),
        a_node(timeouts=Timeouts(queue_seconds=2)),
    )

    assert (task.ready_at, task.due_at) == (LATER, LATER + 2 * SECOND)


def test_more_endings_than_parents_are_a_fault_of_the_engine() -> None:
    task = a_task(state=TaskState.PENDING, waiting=1)

    with pytest.raises(AssertionError, match="more endings than parents"):
        tried(task, ParentsEnded((TaskState.FAILED,) * 2), a_node(2))


@pytest.mark.parametrize("state", sorted(set(TaskState) - {TaskState.PENDING}))
def test_only_a_pending_task_counts_parents(state: TaskState) -> None:
    with pytest.raises(IllegalTransition):
        tried(a_task(state=state), ParentsEnded(()))


# Stopping


@pytest.mark.parametrize("state", [TaskState.PENDING, TaskState.READY, TaskState.BACKOFF])
def test_a_task_that_does_not_run_is_cancelled_at_once(state: TaskState) -> None:
    task = after(a_task(state=state, due_at=LATER), StopRequested(), a_node(children=1))

    assert (task.state, task.reason) == (TaskState.CANCELLED, Reason.CANCELLED)
    assert (task.ended_at, task.due_at, task.told) == (LATER, None, 0)


def test_a_running_task_keeps_session_and_epoch_while_it_is_asked_to_stop() -> None:
    task = after(running(due_at=LATER), StopRequested())

    assert (task.state, task.session_id, task.epoch) == (TaskState.CANCELLING, SESSION, 1)
    assert task.due_at is None


@pytest.mark.parametrize("state", [*sorted(ENDED), TaskState.CANCELLING])
def test_stopping_twice_or_too_late_means_nothing(state: TaskState) -> None:
    assert tried(a_task(state=state), StopRequested()) is None


@pytest.mark.parametrize("report", [failed(), CancelConfirmed(1), Released(1), Lost(1, SESSION)])
def test_a_task_that_was_asked_to_stop_is_cancelled_and_spends_nothing(report: Event) -> None:
    move = moved(cancelling(), report)

    assert (move.task.state, move.task.reason) == (TaskState.CANCELLED, Reason.CANCELLED)
    assert (move.task.failures, move.task.losses, move.attempt) == (0, 0, None)
    assert move.task.error == (ERROR if isinstance(report, Failed) else None)


def test_success_counts_even_when_the_task_was_asked_to_stop() -> None:
    task = after(cancelling(), Succeeded(1))

    assert (task.state, task.reason) == (TaskState.SUCCEEDED, None)


# Replay


def dead(**fields: Any) -> TaskRun:
    plain = {"epoch": 7, "failures": 4, "reason": Reason.EXHAUSTED, "error": ERROR, "told": 1}
    return a_task(state=TaskState.FAILED, ended_no=3, **(plain | fields))


def test_a_replay_gives_fresh_budgets_and_keeps_the_epoch() -> None:
    task = after(dead(losses=2), Replayed())

    assert (task.state, task.epoch) == (TaskState.READY, 7)
    assert (task.failures, task.losses, task.hold) == (0, 0, None)
    assert (task.ended_no, task.reason, task.error) == (None, None, None)


def test_a_replay_makes_the_attempt_history_with_its_own_end() -> None:
    move = moved(dead(started_at=NOON - SECOND), Replayed())

    assert move.attempt is not None
    assert (move.attempt.epoch, move.attempt.attempt) == (7, 4)
    assert (move.attempt.started_at, move.attempt.ended_at) == (NOON - SECOND, NOON)
    assert (move.attempt.reason, move.attempt.error) == (Reason.EXHAUSTED, ERROR)


def test_no_epoch_is_made_history_twice_when_a_task_dies_in_the_queue() -> None:
    node = a_node(timeouts=Timeouts(queue_seconds=1))
    released = moved(running(), Released(1), node)
    assert released.task.due_at is not None

    died = advance(released.task, Due(1, TaskState.READY), node, released.task.due_at, 0.5)

    assert died is not None
    assert died.task.state is TaskState.FAILED
    assert released.attempt is not None
    assert moved(died.task, Replayed(), node).attempt is None


@pytest.mark.parametrize("state", sorted(set(TaskState) - {TaskState.FAILED}))
def test_only_a_dead_letter_is_replayed(state: TaskState) -> None:
    with pytest.raises(IllegalTransition):
        tried(a_task(state=state), Replayed())


REOPENABLE = {
    TaskState.PENDING,
    TaskState.SKIPPED,
    TaskState.UPSTREAM_FAILED,
    TaskState.CANCELLED,
}


@pytest.mark.parametrize("state", sorted(REOPENABLE))
def test_a_reopened_task_waits_again_with_counters_taken_anew(state: TaskState) -> None:
    told = None if state is TaskState.PENDING else 0
    task = a_task(state=state, waiting=0, failed=2, skipped=0, told=told)

    again = after(task, Reopened(waiting=1, failed=0, skipped=1), a_node(2))

    assert (again.state, again.told, again.ended_no) == (TaskState.PENDING, None, None)
    assert (again.waiting, again.failed, again.skipped) == (1, 0, 1)


def test_a_cancelled_attempt_becomes_history_when_the_task_is_reopened() -> None:
    cancelled = after(cancelling(), CancelConfirmed(1))

    move = moved(cancelled, Reopened(waiting=0, failed=0, skipped=0))

    assert move.attempt is not None
    assert (move.attempt.epoch, move.attempt.reason) == (1, Reason.CANCELLED)
    assert move.task.started_at is None


@pytest.mark.parametrize("state", sorted(set(TaskState) - REOPENABLE))
def test_what_has_run_is_not_reopened(state: TaskState) -> None:
    with pytest.raises(IllegalTransition):
        tried(a_task(state=state), Reopened(waiting=0, failed=0, skipped=0))


@pytest.mark.parametrize(
    ("state", "failures", "losses", "attempt"),
    [
        (TaskState.PENDING, 0, 0, 1),
        (TaskState.RUNNING, 0, 0, 1),
        (TaskState.RUNNING, 2, 1, 4),
        (TaskState.BACKOFF, 2, 1, 3),
        (TaskState.FAILED, 3, 0, 3),
        (TaskState.FAILED, 0, 0, 1),
        (TaskState.SUCCEEDED, 1, 0, 2),
    ],
)
def test_attempts_are_numbered_from_one_by_what_was_spent(
    state: TaskState, failures: int, losses: int, attempt: int
) -> None:
    assert a_task(state=state, failures=failures, losses=losses).attempt == attempt
