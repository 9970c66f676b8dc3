"""The state machine of a task: every legal move, and nothing that touches the world.

`due_at` is one timer with a meaning for each state: BACKOFF, when to try again; READY, when the
wait in the queue has been too long, which it never is in a paused run; RUNNING, when the attempt
has been, or while a pool holds the grant, when its workers have been too slow to take it up.

`started_at` is there exactly while the task itself holds its latest attempt: once the attempt is
history, or when none began, it is empty.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidemill.domain import readiness
from tidemill.domain.errors import IllegalTransition
from tidemill.domain.events import (
    Admitted,
    Adopted,
    Bound,
    CancelConfirmed,
    Due,
    Event,
    Failed,
    Granted,
    Held,
    Lost,
    ParentsEnded,
    Released,
    Reopened,
    Replayed,
    StopRequested,
    Succeeded,
)
from tidemill.domain.identifiers import SECOND, Moment
from tidemill.domain.plan import Node
from tidemill.domain.pools import is_pool
from tidemill.domain.retry import RETRY_AFTER_SECONDS_MAX, delay_seconds
from tidemill.domain.task_run import (
    ALONE,
    ENDED,
    GRANTED,
    PAUSED,
    Attempt,
    Reason,
    TaskError,
    TaskRun,
    TaskState,
)
from tidemill.domain.workflow import RetryPolicy

SUSPECT_LOSSES = 3
"""From so many lost sessions on a task is suspected to kill its worker, and runs alone."""

DEADLINE_MARGIN = SECOND
"""The worker enforces an attempt's timeout first; the scheduler waits this much longer."""


REOPENABLE = frozenset(
    {TaskState.PENDING, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED, TaskState.CANCELLED}
)
"""What a replay further up makes wait for its parents again."""


Report: TypeAlias = Succeeded | Failed | CancelConfirmed | Released | Adopted | Lost | Bound
"""What concerns one grant, and nothing that came before or after it."""


class Transition(msgspec.Struct, frozen=True):
    """The task after the move, and the attempt that the move made history."""

    task: TaskRun
    attempt: Attempt | None = None


def advance(
    task: TaskRun, event: Event, node: Node, now: Moment, chance: float
) -> Transition | None:
    """Let `event` happen to `task`; None when it comes too late to mean anything.

    The only place where the state of a task changes.
    """
    state = task.state
    match event:
        case Granted() if state is TaskState.READY:
            return Transition(_granted(task, event, node, now))
        case ParentsEnded() if state is TaskState.PENDING:
            return Transition(_counted(task, event, node, now))
        case Succeeded() | Failed() | CancelConfirmed() | Released() | Adopted() | Lost():
            is_stale = state not in GRANTED or _is_of_another_grant(task, event)
            return None if is_stale else _reported(task, event, node, now, chance)
        case Bound():
            is_stale = state is not TaskState.RUNNING or _is_of_another_grant(task, event)
            return None if is_stale else Transition(_bound(task, event, node, now))
        case Due():
            if (state, task.epoch) != (event.state, event.epoch) or _timer_runs(task, now):
                return None
            return _due(task, node, now, chance)
        case Held() | Admitted():
            # Nothing else waits for a slot; and what is as it should be stays.
            is_late = state is not TaskState.READY or isinstance(event, Held) == (
                task.hold == PAUSED
            )
            return None if is_late else Transition(_held_or_admitted(task, event, node, now))
        case StopRequested():
            return _stopped(task, node, now)
        case Replayed() if state is TaskState.FAILED:
            return Transition(_replayed(task, node, now), _latest_attempt(task))
        case Reopened() if state in REOPENABLE:
            return Transition(_reopened(task, event), _latest_attempt(task))
        case _:
            raise IllegalTransition(
                f"{task.run_id}/{node.id}: no {type(event).__name__} from {state}"
            )


def is_suspect(policy: RetryPolicy, losses: int) -> bool:
    """Whether a task has lost so many sessions that it must run alone."""
    return losses > 0 and losses >= min(SUSPECT_LOSSES, policy.max_losses)


def _is_of_another_grant(task: TaskRun, event: Report) -> bool:
    match event:
        case _ if event.epoch != task.epoch:
            return True
        case Lost(_, session_id):
            return session_id != task.session_id  # adopted by another session since
        case Bound(_, pool, session_id):
            return task.session_id not in {pool, session_id}  # another worker was first
        case Succeeded() | CancelConfirmed() | Adopted():
            return is_pool(task.session_id)  # nobody runs it yet
        case _:
            return False


def _timer_runs(task: TaskRun, now: Moment) -> bool:
    return task.due_at is None or task.due_at > now


def _reported(
    task: TaskRun,
    event: Succeeded | Failed | CancelConfirmed | Released | Adopted | Lost,
    node: Node,
    now: Moment,
    chance: float,
) -> Transition:
    stopping = task.state is TaskState.CANCELLING
    match event:
        case Adopted(_, session_id):
            return Transition(msgspec.structs.replace(task, session_id=session_id))
        case Succeeded():
            # Also when asked to stop: what was done is done, and said so.
            return Transition(_ended(task, TaskState.SUCCEEDED, node, now))
        case Failed() if stopping:
            return Transition(
                _ended(task, TaskState.CANCELLED, node, now, Reason.CANCELLED, event.error)
            )
        case _ if stopping:
            return Transition(_ended(task, TaskState.CANCELLED, node, now, Reason.CANCELLED))
        case Failed():
            return _failed(task, event, node, now, chance)
        case Lost() if not is_pool(task.session_id):
            return _lost(task, node, now)
        case _:
            # Handed back, lost before anyone began, or stopped without having been asked to.
            return _released(task, node, now)


def _released(task: TaskRun, node: Node, now: Moment) -> Transition:
    """Back to the queue, nothing spent."""
    return Transition(_ready(task, node, now), _history(task, Reason.RELEASED, now))


def _failed(task: TaskRun, event: Failed, node: Node, now: Moment, chance: float) -> Transition:
    policy = node.spec.retry
    spent = msgspec.structs.replace(task, failures=task.failures + 1)
    final = event.final or event.error.type in policy.final_errors
    if final or spent.failures > policy.max_retries:
        reason = Reason.FINAL_ERROR if final else Reason.EXHAUSTED
        if event.timeout:
            reason = Reason.TIMEOUT
        return Transition(_ended(spent, TaskState.FAILED, node, now, reason, event.error))
    asked = min(event.retry_after_seconds or 0.0, RETRY_AFTER_SECONDS_MAX)
    delay = max(delay_seconds(policy, spent.failures, chance), asked)
    reason = Reason.TIMEOUT if event.timeout else Reason.FAILED
    after = msgspec.structs.replace(
        spent,
        state=TaskState.BACKOFF,
        due_at=now + round(delay * SECOND),
        session_id=None,
        started_at=None,
        reason=reason,
        error=event.error,
    )
    return Transition(after, _history(task, reason, now, event.error))


def _lost(task: TaskRun, node: Node, now: Moment) -> Transition:
    spent = msgspec.structs.replace(task, losses=task.losses + 1)
    error = TaskError(type="WorkerLost", message="the worker that ran the task is gone")
    if spent.losses > node.spec.retry.max_losses:
        return Transition(_ended(spent, TaskState.FAILED, node, now, Reason.LOST, error))
    return Transition(_ready(spent, node, now), _history(task, Reason.LOST, now, error))


def _due(task: TaskRun, node: Node, now: Moment, chance: float) -> Transition:
    if task.state is TaskState.BACKOFF:
        return Transition(_ready(task, node, now))
    if task.state is TaskState.READY:
        text = f"waited in the queue for more than {node.spec.timeouts.queue_seconds:g} s"
        error = TaskError(type="QueueTimeout", message=text)
        return Transition(_ended(task, TaskState.FAILED, node, now, Reason.TIMEOUT, error))
    if is_pool(task.session_id):
        return _released(task, node, now)
    text = f"the attempt took more than {node.spec.timeouts.attempt_seconds:g} s"
    error = TaskError(type="AttemptTimeout", message=text)
    return _failed(task, Failed(epoch=task.epoch, error=error, timeout=True), node, now, chance)


def _stopped(task: TaskRun, node: Node, now: Moment) -> Transition | None:
    if task.state in ENDED or task.state is TaskState.CANCELLING:
        return None
    if task.state is TaskState.RUNNING and not is_pool(task.session_id):
        return Transition(msgspec.structs.replace(task, state=TaskState.CANCELLING, due_at=None))
    # Nobody has begun it; a worker that took it up after this would come too late.
    return Transition(_ended(task, TaskState.CANCELLED, node, now, Reason.CANCELLED))


def _granted(task: TaskRun, event: Granted, node: Node, now: Moment) -> TaskRun:
    return msgspec.structs.replace(
        task,
        state=TaskState.RUNNING,
        epoch=task.epoch + 1,
        session_id=event.session_id,
        hold=None,
        started_at=now,
        due_at=_begin_by(event, now) if is_pool(event.session_id) else _deadline(node, now),
        reason=None,
        error=None,
    )


def _begin_by(event: Granted, now: Moment) -> Moment:
    assert event.start_seconds is not None, "whoever grants to a pool says for how long"
    return now + round(event.start_seconds * SECOND)


def _bound(task: TaskRun, event: Bound, node: Node, now: Moment) -> TaskRun:
    if task.session_id == event.session_id:
        return task  # said again: the answer was lost
    return msgspec.structs.replace(
        task, session_id=event.session_id, started_at=now, due_at=_deadline(node, now)
    )


def _deadline(node: Node, now: Moment) -> Moment | None:
    limit = node.spec.timeouts.attempt_seconds
    return None if limit is None else now + round(limit * SECOND) + DEADLINE_MARGIN


def _counted(task: TaskRun, event: ParentsEnded, node: Node, now: Moment) -> TaskRun:
    tally = readiness.tally_of(event.endings)
    assert tally.waiting == 0, "a parent that has not ended tells nothing"
    assert task.waiting >= len(event.endings), "more endings than parents"
    counted = msgspec.structs.replace(
        task,
        waiting=task.waiting - len(event.endings),
        failed=task.failed + tally.failed,
        skipped=task.skipped + tally.skipped,
    )
    if counted.waiting:
        return counted
    fate = readiness.fate(node.spec.trigger, len(node.parents), counted.failed, counted.skipped)
    if fate is TaskState.READY:
        return _ready(counted, node, now)
    return _ended(counted, fate, node, now)


def _ready(task: TaskRun, node: Node, now: Moment) -> TaskRun:
    limit = node.spec.timeouts.queue_seconds
    return msgspec.structs.replace(
        task,
        state=TaskState.READY,
        session_id=None,
        hold=ALONE if is_suspect(node.spec.retry, task.losses) else None,
        ready_at=now,
        started_at=None,
        due_at=None if limit is None else now + round(limit * SECOND),
    )


def _held_or_admitted(task: TaskRun, event: Held | Admitted, node: Node, now: Moment) -> TaskRun:
    if isinstance(event, Held):
        return msgspec.structs.replace(task, hold=PAUSED, due_at=None)
    return _ready(task, node, now)  # its wait in the queue begins anew


def _ended(
    task: TaskRun,
    state: TaskState,
    node: Node,
    now: Moment,
    reason: Reason | None = None,
    error: TaskError | None = None,
) -> TaskRun:
    return msgspec.structs.replace(
        task,
        state=state,
        session_id=None,
        hold=None,
        due_at=None,
        ended_at=now,
        told=0 if node.children else None,
        reason=reason,
        error=error,
    )


def _replayed(task: TaskRun, node: Node, now: Moment) -> TaskRun:
    fresh = msgspec.structs.replace(
        task,
        failures=0,
        losses=0,
        ended_at=None,
        ended_no=None,
        told=None,
        reason=None,
        error=None,
    )
    return _ready(fresh, node, now)


def _reopened(task: TaskRun, event: Reopened) -> TaskRun:
    return msgspec.structs.replace(
        task,
        state=TaskState.PENDING,
        waiting=event.waiting,
        failed=event.failed,
        skipped=event.skipped,
        told=None,
        started_at=None,
        ended_at=None,
        ended_no=None,
        reason=None,
        error=None,
    )


def _latest_attempt(task: TaskRun) -> Attempt | None:
    """What becomes history when an ended task runs again; None if it ended without an attempt."""
    if task.started_at is None:
        return None
    assert task.ended_at is not None
    return _history(task, task.reason, task.ended_at)


def _history(
    task: TaskRun, reason: Reason | None, now: Moment, error: TaskError | None = None
) -> Attempt:
    assert reason is not None
    return Attempt(
        run_id=task.run_id,
        position=task.position,
        epoch=task.epoch,
        attempt=task.attempt,
        reason=reason,
        session_id=task.session_id,
        started_at=task.started_at,
        ended_at=now,
        error=error or task.error,
    )
