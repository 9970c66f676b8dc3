"""Every move that the state machines make, found by trying all events in all states."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, get_args

from tests.builders import NOON, a_run, a_task
from tests.domain.plans import a_node
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
from tidemill.domain.identifiers import SessionId
from tidemill.domain.plan import Node
from tidemill.domain.run import Run, RunState
from tidemill.domain.run_transitions import (
    AllEnded,
    PauseAsked,
    ResumeAsked,
    RunEvent,
    RunReopened,
    StopAsked,
    Unfolded,
    advance_run,
)
from tidemill.domain.task_run import ENDED, GRANTED, PAUSED, Reason, TaskError, TaskRun, TaskState
from tidemill.domain.transitions import advance
from tidemill.domain.workflow import RetryPolicy, Timeouts, TriggerRule

SESSION = SessionId("session-0")
POOL = SessionId("pool-0")
ERROR = TaskError(type="ValueError", message="no such order")
_TIMED = {TaskState.READY, TaskState.RUNNING, TaskState.BACKOFF}


class Move(NamedTuple):
    """From one state to another, or to itself, by an event."""

    before: str
    event: str
    after: str


def task_moves() -> set[Move]:
    """All moves of a task."""
    moves = set()
    tasks = [_task(state, spent, holder) for (state, holder), spent in product(_holdings(), (0, 1))]
    tasks.append(a_task(hold=PAUSED))
    for task, node in product(tasks, _nodes()):
        for event in _events(task):
            after = _after(task, event, node)
            if after is not None and after != task:
                moves.add(Move(task.state, type(event).__name__, after.state))
    return moves


def run_moves() -> set[Move]:
    """All moves of a run."""
    moves = set()
    for run, event in product(_runs(), _run_events()):
        try:
            after = advance_run(run, event, NOON)
        except IllegalTransition:
            continue
        if after != run:
            moves.add(Move(run.state, type(event).__name__, after.state))
    return moves


def event_names() -> set[str]:
    """The names of all events of a task."""
    return {event.__name__ for event in get_args(Event)}


def run_event_names() -> set[str]:
    """The names of all events of a run."""
    return {event.__name__ for event in get_args(RunEvent)}


def _after(task: TaskRun, event: Event, node: Node) -> TaskRun | None:
    try:
        move = advance(task, event, node, NOON, 0.5)
    except IllegalTransition:
        return None
    return None if move is None else move.task


def _nodes() -> Iterator[Node]:
    for rule in TriggerRule:
        yield a_node(
            parents=2,
            trigger=rule,
            retry=RetryPolicy(max_retries=1, max_losses=1),
            timeouts=Timeouts(attempt_seconds=1, queue_seconds=1),
        )


def _holdings() -> Iterator[tuple[TaskState, SessionId]]:
    yield from ((state, SESSION) for state in TaskState)
    yield TaskState.RUNNING, POOL


def _task(state: TaskState, spent: int, holder: SessionId) -> TaskRun:
    return a_task(
        state=state,
        failures=spent,
        losses=spent,
        waiting=2 if state is TaskState.PENDING else 0,
        due_at=NOON if state in _TIMED else None,
        session_id=holder if state in GRANTED else None,
        reason=Reason.EXHAUSTED if state in ENDED else None,
    )


def _events(task: TaskRun) -> Iterator[Event]:
    epoch = task.epoch
    yield Granted(SESSION)
    yield Granted(POOL, 15.0)
    yield Bound(epoch, POOL, SESSION)
    yield Succeeded(epoch)
    yield Failed(epoch=epoch, error=ERROR)
    yield Failed(epoch=epoch, error=ERROR, final=True)
    yield CancelConfirmed(epoch)
    yield Released(epoch)
    yield Adopted(epoch, SessionId("session-1"))
    yield Lost(epoch, SESSION)
    yield Lost(epoch, POOL)
    yield from (Due(epoch, state) for state in TaskState)
    if task.waiting:
        yield ParentsEnded((TaskState.SUCCEEDED,))
        yield from (ParentsEnded(pair) for pair in product(sorted(ENDED), repeat=2))
    else:
        yield ParentsEnded(())
    yield Held()
    yield Admitted()
    yield StopRequested()
    yield Replayed()
    yield Reopened(waiting=1, failed=1, skipped=0)


def _runs() -> Iterator[Run]:
    for state, stop, failed in product(RunState, (None, *Reason), (0, 1)):
        if state is not RunState.PAUSED or stop is None:  # a stop ends a pause
            yield a_run(state=state, stop=stop, failed=failed, open=0)
    yield a_run(state=RunState.PAUSED, started_at=None, open=0)


def _run_events() -> Iterator[RunEvent]:
    yield Unfolded()
    yield from (StopAsked(reason) for reason in Reason)
    yield PauseAsked()
    yield ResumeAsked()
    yield AllEnded()
    yield RunReopened(None)
