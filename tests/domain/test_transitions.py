"""The state machine of a task, rule by rule: grants, reports, losses and timers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import NOON, a_task
from tests.domain.legal_moves import ERROR, SESSION
from tests.domain.plans import a_node
from tests.domain.task_moves import LATER, after, failed, moved, running, tried
from tidemill.domain.errors import IllegalTransition
from tidemill.domain.events import (
    Adopted,
    CancelConfirmed,
    Due,
    Event,
    Failed,
    Granted,
    Lost,
    Released,
    Succeeded,
)
from tidemill.domain.identifiers import SECOND, SessionId
from tidemill.domain.plan import Node
from tidemill.domain.task_run import ALONE, Attempt, Reason, TaskState
from tidemill.domain.transitions import DEADLINE_MARGIN, is_suspect
from tidemill.domain.workflow import RetryPolicy, Timeouts

OTHER = SessionId("session-1")


def with_retry(**policy: Any) -> Node:
    return a_node(retry=RetryPolicy(**policy))


# Grants


def test_a_grant_gives_the_task_to_the_session_under_a_new_epoch() -> None:
    task = after(a_task(epoch=4, reason=Reason.FAILED, error=ERROR), Granted(OTHER))

    assert (task.state, task.session_id, task.epoch) == (TaskState.RUNNING, OTHER, 5)
    assert (task.started_at, task.due_at, task.reason, task.error) == (LATER, None, None, None)


def test_the_scheduler_gives_an_attempt_a_little_longer_than_the_worker_does() -> None:
    task = after(a_task(), Granted(OTHER), a_node(timeouts=Timeouts(attempt_seconds=2.5)))

    assert task.due_at == LATER + 2_500_000 + DEADLINE_MARGIN


@pytest.mark.parametrize("state", sorted(set(TaskState) - {TaskState.READY}))
def test_only_a_ready_task_is_granted(state: TaskState) -> None:
    with pytest.raises(IllegalTransition, match=f"/a: no Granted from {state}"):
        tried(a_task(state=state), Granted(OTHER))


# Reports


@pytest.mark.parametrize(
    "report",
    [
        Succeeded(1),
        failed(),
        CancelConfirmed(1),
        Released(1),
        Adopted(1, OTHER),
        Lost(1, SESSION),
    ],
)
@pytest.mark.parametrize("state", TaskState)
def test_a_report_without_the_current_grant_is_stale(state: TaskState, report: Event) -> None:
    regranted = a_task(state=state, epoch=2)
    ungranted = a_task(state=TaskState.READY, epoch=1)

    assert tried(regranted, report) is None
    assert tried(ungranted, report) is None


def test_success_ends_the_task() -> None:
    task = after(running(), Succeeded(1, b"1"), a_node(children=2))

    assert (task.state, task.ended_at, task.session_id) == (TaskState.SUCCEEDED, LATER, None)
    assert (task.told, task.started_at) == (0, NOON)


def test_an_ended_task_without_children_has_nobody_to_tell() -> None:
    assert after(running(), Succeeded(1)).told is None


def test_a_failure_is_followed_by_a_backoff_that_the_policy_asks_for() -> None:
    move = moved(running(failures=1), failed(), with_retry(base_seconds=3, factor=2, jitter=0))

    assert (move.task.state, move.task.failures) == (TaskState.BACKOFF, 2)
    assert move.task.due_at == LATER + 6 * SECOND
    assert (move.task.reason, move.task.error) == (Reason.FAILED, ERROR)


def test_a_failed_attempt_that_another_one_follows_becomes_history() -> None:
    task = running(failures=1, losses=1, epoch=5)

    assert moved(task, failed(epoch=5)).attempt == Attempt(
        run_id=task.run_id,
        position=0,
        epoch=5,
        attempt=3,
        reason=Reason.FAILED,
        session_id=SESSION,
        started_at=NOON,
        ended_at=LATER,
        error=ERROR,
    )


@pytest.mark.parametrize(("asked", "seconds"), [(0.5, 1.0), (90.0, 90.0), (9e9, 3_600.0)])
def test_patience_that_was_asked_for_lengthens_the_backoff_within_its_bound(
    asked: float, seconds: float
) -> None:
    task = after(running(), failed(retry_after_seconds=asked), with_retry(jitter=0))

    assert task.due_at == LATER + round(seconds * SECOND)


@pytest.mark.parametrize(
    ("report", "policy", "reason"),
    [
        (failed(), {"max_retries": 0}, Reason.EXHAUSTED),
        (failed(final=True), {}, Reason.FINAL_ERROR),
        (failed(), {"final_errors": ("KeyError", "ValueError")}, Reason.FINAL_ERROR),
        (failed(timeout=True), {"max_retries": 0}, Reason.TIMEOUT),
        (failed(timeout=True, final=True), {}, Reason.TIMEOUT),
    ],
)
def test_a_failure_is_for_good_when_no_retry_is_left_or_none_can_help(
    report: Failed, policy: dict[str, Any], reason: Reason
) -> None:
    move = moved(running(), report, with_retry(**policy))

    assert (move.task.state, move.task.reason) == (TaskState.FAILED, reason)
    assert (move.task.error, move.task.failures, move.attempt) == (ERROR, 1, None)


def test_a_timeout_that_another_attempt_follows_says_so() -> None:
    move = moved(running(), failed(timeout=True))

    assert move.task.reason is Reason.TIMEOUT
    assert move.attempt is not None
    assert move.attempt.reason is Reason.TIMEOUT


@pytest.mark.parametrize("report", [Released(1), CancelConfirmed(1)])
def test_a_task_that_is_handed_back_has_spent_nothing(report: Event) -> None:
    move = moved(running(failures=2, losses=2), report)

    assert (move.task.state, move.task.failures, move.task.losses) == (TaskState.READY, 2, 2)
    assert (move.task.epoch, move.task.ready_at, move.task.started_at) == (1, LATER, None)
    assert move.attempt is not None
    assert move.attempt.reason is Reason.RELEASED


@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.CANCELLING])
def test_adoption_changes_the_session_and_nothing_else(state: TaskState) -> None:
    task = a_task(state=state)

    adopted = after(task, Adopted(1, OTHER))

    assert adopted == a_task(run_id=task.run_id, state=state, session_id=OTHER)


# Losses


def test_a_lost_session_makes_the_task_ready_again_and_spends_a_loss() -> None:
    move = moved(running(), Lost(1, SESSION))

    assert (move.task.state, move.task.losses, move.task.failures) == (TaskState.READY, 1, 0)
    assert move.attempt is not None
    assert (move.attempt.reason, move.attempt.attempt) == (Reason.LOST, 1)
    assert move.attempt.error is not None
    assert move.attempt.error.type == "WorkerLost"


def test_the_loss_of_a_session_that_no_longer_holds_the_task_is_stale() -> None:
    adopted = running(session_id=OTHER)

    assert tried(adopted, Lost(1, SESSION)) is None


def test_a_task_that_lost_too_many_sessions_is_a_dead_letter() -> None:
    task = after(running(losses=2), Lost(1, SESSION), with_retry(max_losses=2))

    assert (task.state, task.reason, task.losses) == (TaskState.FAILED, Reason.LOST, 3)


@pytest.mark.parametrize(
    ("max_losses", "losses", "suspect"),
    [(20, 0, False), (20, 2, False), (20, 3, True), (1, 1, True), (0, 0, False)],
)
def test_a_task_is_suspect_after_three_losses_or_before_its_last_chance(
    max_losses: int, losses: int, suspect: bool
) -> None:
    assert is_suspect(RetryPolicy(max_losses=max_losses), losses) is suspect


def test_a_suspect_task_waits_for_a_worker_of_its_own() -> None:
    assert after(running(losses=1), Lost(1, SESSION)).hold is None
    assert after(running(losses=2), Lost(1, SESSION)).hold == ALONE
    assert after(running(losses=5), Released(1)).hold == ALONE


# Timers


def test_a_backoff_that_is_over_makes_the_task_ready() -> None:
    waiting = a_task(state=TaskState.BACKOFF, failures=1, epoch=1, due_at=LATER)

    task = after(waiting, Due(1, TaskState.BACKOFF), a_node(timeouts=Timeouts(queue_seconds=5)))

    assert (task.state, task.due_at) == (TaskState.READY, LATER + 5 * SECOND)


def test_too_long_a_wait_in_the_queue_ends_the_task() -> None:
    node = a_node(timeouts=Timeouts(queue_seconds=1.5))

    task = after(a_task(due_at=LATER), Due(0, TaskState.READY), node)

    assert (task.state, task.reason, task.failures) == (TaskState.FAILED, Reason.TIMEOUT, 0)
    assert task.error is not None
    assert task.error.message == "waited in the queue for more than 1.5 s"


@pytest.mark.parametrize(("retries", "state"), [(1, TaskState.BACKOFF), (0, TaskState.FAILED)])
def test_too_long_an_attempt_counts_as_a_failure(retries: int, state: TaskState) -> None:
    retry = RetryPolicy(max_retries=retries)
    node = a_node(retry=retry, timeouts=Timeouts(attempt_seconds=30))

    task = after(running(due_at=LATER), Due(1, TaskState.RUNNING), node)

    assert (task.state, task.reason, task.failures) == (state, Reason.TIMEOUT, 1)
    assert task.error is not None
    assert task.error.message == "the attempt took more than 30 s"


@pytest.mark.parametrize(
    ("due_at", "event"),
    [
        (LATER, Due(1, TaskState.READY)),
        (LATER, Due(0, TaskState.RUNNING)),
        (LATER + 1, Due(1, TaskState.RUNNING)),
        (None, Due(1, TaskState.RUNNING)),
    ],
)
def test_a_timer_that_was_set_for_something_else_or_still_runs_means_nothing(
    due_at: int | None, event: Due
) -> None:
    assert tried(running(due_at=due_at), event) is None
