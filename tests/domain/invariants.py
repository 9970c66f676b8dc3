"""What is true of every task value that the state machine can reach."""

from __future__ import annotations

from tidemill.domain.plan import Node
from tidemill.domain.task_run import ALONE, ENDED, GRANTED, PAUSED, Reason, TaskRun, TaskState
from tidemill.domain.workflow import RetryPolicy

_UNSTARTED = {
    TaskState.PENDING,
    TaskState.READY,
    TaskState.BACKOFF,
    TaskState.SKIPPED,
    TaskState.UPSTREAM_FAILED,
}


def assert_sound(task: TaskRun, node: Node) -> None:
    """Refuse a task value that breaks an invariant."""
    _assert_fields_fit_the_state(task)
    _assert_budgets_hold(task, node.spec.retry)
    _assert_counters_fit(task, len(node.parents))


def _assert_fields_fit_the_state(task: TaskRun) -> None:
    state = task.state
    assert (task.session_id is not None) == (state in GRANTED), "a session exactly while granted"
    assert (task.ended_at is not None) == (state in ENDED), "ended_at exactly when ended"
    assert task.hold is None or state is TaskState.READY, "a hold only when READY"
    assert task.told is None or state in ENDED, "told only when ended"
    assert task.started_at is None or state not in _UNSTARTED, "no start without an attempt"
    assert task.started_at is not None or state not in GRANTED | {TaskState.SUCCEEDED}
    assert task.due_at is not None or state is not TaskState.BACKOFF, "a backoff has an end"
    timed = {TaskState.READY, TaskState.RUNNING, TaskState.BACKOFF}
    assert task.due_at is None or state in timed, "a timer only where one is looked at"
    assert task.epoch > 0 or state not in GRANTED, "a grant has an epoch"
    if state is TaskState.FAILED:
        assert task.error is not None
        assert task.reason in {
            Reason.EXHAUSTED,
            Reason.FINAL_ERROR,
            Reason.TIMEOUT,
            Reason.LOST,
        }
    if state is TaskState.CANCELLED:
        assert task.reason is Reason.CANCELLED


def _assert_budgets_hold(task: TaskRun, policy: RetryPolicy) -> None:
    dead = task.state is TaskState.FAILED
    assert 0 <= task.failures <= policy.max_retries + dead, "only a dead letter is overdrawn"
    assert 0 <= task.losses <= policy.max_losses + dead
    suspect = task.losses > 0 and task.losses >= min(3, policy.max_losses)
    if task.state is TaskState.READY:
        assert task.hold in {PAUSED, ALONE if suspect else None}
        assert task.hold != PAUSED or task.due_at is None, "no queue timeout while paused"


def _assert_counters_fit(task: TaskRun, parents: int) -> None:
    assert min(task.waiting, task.failed, task.skipped) >= 0
    assert task.waiting + task.failed + task.skipped <= parents
    assert task.waiting == 0 or task.state in {TaskState.PENDING, TaskState.CANCELLED}
