"""Properties of the state machine of a task, over random sequences of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import NOON, a_task
from tests.domain.invariants import assert_sound
from tests.domain.legal_moves import ERROR, Move, task_moves
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
from tidemill.domain.identifiers import SECOND, SessionId
from tidemill.domain.plan import Node
from tidemill.domain.task_run import ENDED, GRANTED, TaskRun, TaskState
from tidemill.domain.transitions import Transition, advance
from tidemill.domain.workflow import RetryPolicy, Timeouts, TriggerRule

T = TypeVar("T")
SESSIONS = [SessionId("session-0"), SessionId("session-1")]
POOL = SessionId("pool-0")
HOLDERS = [*SESSIONS, POOL]
REPORTS = (Succeeded, Failed, CancelConfirmed, Released, Adopted, Lost, Bound)
SECONDS = st.none() | st.integers(1, 5)
Report = Succeeded | Failed | CancelConfirmed | Released | Adopted | Lost | Bound

# Which event follows is drawn evenly over those that the state is made for, so that sequences go
# deep, and now and then over all of them, so that they go astray.
USUAL: dict[TaskState, tuple[type[Event], ...]] = {
    TaskState.PENDING: (ParentsEnded, ParentsEnded, StopRequested, Reopened),
    TaskState.READY: (Granted, Granted, Granted, Held, Admitted, Due, StopRequested),
    TaskState.RUNNING: (Bound, Succeeded, Failed, Failed, Released, Lost, Lost, Due, StopRequested),
    TaskState.BACKOFF: (Due, Due, Due, StopRequested),
    TaskState.CANCELLING: (Succeeded, Failed, CancelConfirmed, Lost, Adopted),
    TaskState.SUCCEEDED: (StopRequested,),
    TaskState.FAILED: (Replayed,),
    TaskState.SKIPPED: (Reopened,),
    TaskState.UPSTREAM_FAILED: (Reopened,),
    TaskState.CANCELLED: (Reopened,),
}
EVERY: tuple[type[Event], ...] = tuple({kind: None for some in USUAL.values() for kind in some})


STEPS_MAX = 60
SEEDS = st.integers(0, 2**32)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    return a_node(
        parents=draw(st.integers(0, 3)),
        children=draw(st.integers(0, 1)),
        trigger=draw(st.sampled_from(TriggerRule)),
        retry=RetryPolicy(max_retries=draw(st.integers(0, 2)), max_losses=draw(st.integers(0, 4))),
        timeouts=Timeouts(attempt_seconds=draw(SECONDS), queue_seconds=draw(SECONDS)),
    )


def picked(choices: Sequence[T], number: int) -> T:
    return choices[number % len(choices)]


def report_of(kind: type[Event], epoch: int, number: int) -> Report:
    match kind.__name__:
        case "Failed":
            return Failed(epoch=epoch, error=ERROR, final=number % 3 == 0)
        case "Adopted":
            return Adopted(epoch, picked(SESSIONS, number))
        case "Lost":
            return Lost(epoch, picked(HOLDERS, number))
        case "Bound":
            return Bound(epoch, POOL, picked(SESSIONS, number))
        case "Succeeded":
            return Succeeded(epoch)
        case "Released":
            return Released(epoch)
        case _:
            return CancelConfirmed(epoch)


def event_of(kind: type[Event], task: TaskRun, node: Node, number: int) -> Event:
    epoch = task.epoch - (number % 5 == 0)
    parents = len(node.parents)
    match kind.__name__:
        case "Granted":
            return Granted(picked(HOLDERS, number), 15.0)
        case "Due":
            return Due(epoch, picked([*TaskState, *[task.state] * 20], number))
        case "ParentsEnded":
            choices = [*sorted(ENDED), *[TaskState.SUCCEEDED] * 4]
            endings = [picked(choices, number // 9**place) for place in range(parents)]
            return ParentsEnded(tuple(endings[: min(task.waiting, 1 + number % 3)]))
        case "Held":
            return Held()
        case "Admitted":
            return Admitted()
        case "StopRequested":
            return StopRequested()
        case "Replayed":
            return Replayed()
        case "Reopened":
            failed = number % (parents + 1)
            skipped = number // 4 % (parents - failed + 1)
            return Reopened(waiting=parents - failed - skipped, failed=failed, skipped=skipped)
        case _:
            return report_of(kind, epoch, number)


def began(task: TaskRun) -> bool:
    """Whether some worker may have begun what was granted."""
    return task.session_id != POOL


class Step(NamedTuple):
    """An event, the task before and after it, and the move if there was one."""

    before: TaskRun
    event: Event
    move: Transition | None
    after: TaskRun


def walked(node: Node, seed: int) -> Iterator[Step]:
    """Let events happen one by one, as chance chooses them."""
    random = Random(seed)
    task = a_task(state=TaskState.PENDING, waiting=len(node.parents))
    now = NOON
    for _ in range(random.randint(1, STEPS_MAX)):
        kind = random.choice([*USUAL[task.state] * 4, *EVERY])
        event = event_of(kind, task, node, random.randrange(1_000))
        now += random.choice([0, SECOND, 100 * SECOND])
        try:
            move = advance(task, event, node, now, random.random())
        except IllegalTransition:
            move = None
        step = Step(task, event, move, task if move is None else move.task)
        task = step.after
        yield step


def test_the_walks_make_every_move_that_there_is() -> None:
    retry = RetryPolicy(max_retries=1, max_losses=1)
    timeouts = Timeouts(attempt_seconds=1, queue_seconds=1)
    nodes = [a_node(2, trigger=rule, retry=retry, timeouts=timeouts) for rule in TriggerRule]

    moves = {
        Move(step.before.state, type(step.event).__name__, step.after.state)
        for seed in range(1_000)
        for step in walked(picked(nodes, seed), seed)
        if step.after != step.before
    }

    assert moves == task_moves()


@settings(max_examples=200, deadline=None)
@given(nodes(), SEEDS)
def test_every_value_that_can_be_reached_is_sound(node: Node, seed: int) -> None:
    for step in walked(node, seed):
        assert_sound(step.after, node)


@settings(max_examples=100, deadline=None)
@given(nodes(), SEEDS)
def test_the_epoch_never_falls_and_rises_by_one_with_a_grant_only(node: Node, seed: int) -> None:
    for step in walked(node, seed):
        granted = isinstance(step.event, Granted) and step.move is not None
        assert step.after.epoch == step.before.epoch + granted


@settings(max_examples=100, deadline=None)
@given(nodes(), SEEDS)
def test_an_ending_is_left_by_a_replay_only(node: Node, seed: int) -> None:
    for step in walked(node, seed):
        if step.before.state in ENDED and not isinstance(step.event, Replayed | Reopened):
            assert step.after == step.before


@settings(max_examples=100, deadline=None)
@given(nodes(), SEEDS, st.integers(1, 5))
def test_a_report_with_an_old_epoch_never_changes_anything(node: Node, seed: int, age: int) -> None:
    *_, last = walked(node, seed)
    now = NOON + 10_000 * SECOND

    for kind in REPORTS:
        for number in range(3):
            stale = report_of(kind, last.after.epoch - age, number)
            assert advance(last.after, stale, node, now, 0.5) is None


@settings(max_examples=150, deadline=None)
@given(nodes(), SEEDS)
def test_each_grant_becomes_history_at_most_once_and_only_when_another_may_follow(
    node: Node, seed: int
) -> None:
    recorded: list[int] = []

    for step in walked(node, seed):
        if step.move is not None and step.move.attempt is not None:
            recorded.append(step.move.attempt.epoch)
            assert step.after.state not in ENDED | GRANTED
            assert step.move.attempt.started_at == step.before.started_at
        assert recorded == sorted(set(recorded))
        assert step.after.started_at is None or step.after.epoch not in recorded


@settings(max_examples=100, deadline=None)
@given(nodes(), SEEDS)
def test_no_grant_is_forgotten(node: Node, seed: int) -> None:
    known: set[int] = set()

    for step in walked(node, seed):
        if step.move is not None and step.move.attempt is not None:
            known.add(step.move.attempt.epoch)
        here = {step.after.epoch} if step.after.started_at is not None else set()
        assert known | here == set(range(1, step.after.epoch + 1))


@settings(max_examples=100, deadline=None)
@given(nodes(), SEEDS)
def test_only_failures_and_losses_spend_a_budget_and_only_a_replay_restores_it(
    node: Node, seed: int
) -> None:
    for before, event, move, after in walked(node, seed):
        spent = (after.failures - before.failures, after.losses - before.losses)
        if move is None or before.state is not TaskState.RUNNING:
            assert spent == (0, 0) or isinstance(event, Replayed)
        else:
            failed = isinstance(event, Failed) or (isinstance(event, Due) and began(before))
            assert spent == (failed, isinstance(event, Lost) and began(before))


@settings(max_examples=100, deadline=None)
@given(nodes(), SEEDS)
def test_what_a_pool_holds_gets_to_one_worker_and_stays_there(node: Node, seed: int) -> None:
    takers: dict[int, SessionId | None] = {}

    for step in walked(node, seed):
        if step.move is not None and isinstance(step.event, Bound):
            first = takers.setdefault(step.after.epoch, step.after.session_id)
            assert step.after.session_id == step.event.session_id
            assert began(step.before) is (step.after == step.before)
            assert step.event.session_id == first or not began(step.before)


@settings(max_examples=100, deadline=None)
@given(nodes(), SEEDS)
def test_nobody_reports_the_end_of_what_a_pool_holds(node: Node, seed: int) -> None:
    for step in walked(node, seed):
        if step.before.state is TaskState.RUNNING and not began(step.before):
            assert step.after.state is not TaskState.SUCCEEDED
            assert step.after.state is not TaskState.CANCELLING
