"""The ledger of a run that is being stopped."""

from __future__ import annotations

import pytest

from tests.builders import a_task
from tests.domain.ledgers import CHAIN, FAILURE, FAN_OUT, a_ledger, kinds, running, waiting
from tests.domain.plans import a_plan, a_spec
from tidemill.domain.events import CancelConfirmed, Succeeded
from tidemill.domain.facts import FactType
from tidemill.domain.run import RunState
from tidemill.domain.task_run import Reason, TaskState


def test_a_stop_is_told_once() -> None:
    ledger = a_ledger(CHAIN, running())

    ledger.stop(Reason.CANCELLED)
    ledger.stop(Reason.TIMEOUT)

    assert ledger.run.stop is Reason.CANCELLED
    assert (kinds(ledger), ledger.journal.facts[0].reason) == (
        [FactType.WORKFLOW_STOPPING],
        "cancelled",
    )


def test_a_stop_that_comes_too_late_is_not_told() -> None:
    ledger = a_ledger(CHAIN, state=RunState.SUCCEEDED, open=0)

    ledger.stop(Reason.CANCELLED)

    assert (ledger.journal.facts, ledger.changed_run()) == ([], None)


@pytest.mark.parametrize(
    ("state", "stored", "asked", "stopping", "must"),
    [
        (RunState.RUNNING, None, None, False, False),
        (RunState.RUNNING, None, Reason.TIMEOUT, True, True),
        (RunState.RUNNING, Reason.CANCELLED, Reason.TIMEOUT, True, False),
        (RunState.PENDING, None, Reason.TIMEOUT, False, False),
        (RunState.FAILED, Reason.TIMEOUT, Reason.TIMEOUT, False, False),
    ],
)
def test_tasks_are_stopped_by_the_turn_that_begins_to_stop_the_run(
    state: RunState, stored: Reason | None, asked: Reason | None, stopping: bool, must: bool
) -> None:
    ledger = a_ledger(FAN_OUT, state=state, stop=stored)
    if asked is not None:
        ledger.stop(asked)

    assert (ledger.is_stopping, ledger.must_stop_tasks) == (stopping, must)


def test_a_failure_stops_only_a_run_that_asks_for_it() -> None:
    two = (a_spec("a"), a_spec("b"))
    going_on = a_ledger(a_plan(*two), running())
    stopping = a_ledger(a_plan(*two, on_failure="stop"), running())

    for ledger in (going_on, stopping):
        ledger.happen(0, FAILURE)

    assert going_on.run.stop is None
    assert stopping.run.stop is Reason.TASK_FAILED
    assert kinds(stopping) == [FactType.TASK_FAILED, FactType.WORKFLOW_STOPPING]


def test_tasks_of_a_stopped_run_are_cancelled_or_asked_to_stop() -> None:
    ledger = a_ledger(FAN_OUT, stop=Reason.CANCELLED, open=2)
    ready, busy = a_task(position=1), running(2)

    ledger.stop_tasks([ready, busy], more=False)

    states = [task.state for task in ledger.changed_tasks()]
    assert states == [TaskState.CANCELLED, TaskState.CANCELLING]
    assert (ledger.run.open, ledger.unfinished) == (1, False)


def test_a_run_ends_when_the_last_worker_has_confirmed() -> None:
    task = a_task(state=TaskState.CANCELLING)
    ledger = a_ledger(a_plan(a_spec()), task, stop=Reason.CANCELLED)

    ledger.happen(0, CancelConfirmed(1))
    ledger.settle()

    assert ledger.run.state is RunState.CANCELLED
    assert kinds(ledger) == [FactType.TASK_CANCELLED, FactType.WORKFLOW_CANCELLED]


def test_a_stop_of_many_tasks_goes_on_in_the_next_turn() -> None:
    ledger = a_ledger(FAN_OUT, stop=Reason.CANCELLED, rows_max=2)

    ledger.stop_tasks(waiting(1, 2), more=True)

    assert ledger.unfinished


def test_a_row_that_has_moved_on_in_this_turn_is_stopped_as_it_is_now() -> None:
    ledger = a_ledger(FAN_OUT, running(1), stop=Reason.CANCELLED)
    ledger.happen(1, Succeeded(1))

    ledger.stop_tasks([running(1)], more=False)

    assert [task.state for task in ledger.changed_tasks()] == [TaskState.SUCCEEDED]


def test_only_a_run_with_a_stop_has_its_tasks_stopped() -> None:
    with pytest.raises(AssertionError):
        a_ledger(FAN_OUT).stop_tasks([running()], more=False)


def test_children_in_a_stopped_run_are_not_told() -> None:
    ledger = a_ledger(FAN_OUT, running(), *waiting(1, 2, 3, 4), stop=Reason.CANCELLED, told=0)
    ledger.happen(0, Succeeded(1))

    ledger.tell()

    (task,) = ledger.changed_tasks()
    assert (task.state, task.told, ledger.run.told) == (TaskState.SUCCEEDED, None, None)
    assert (ledger.wanted(), ledger.unfinished) == ([], False)


def test_a_failure_in_the_turn_keeps_other_endings_from_being_told() -> None:
    plan = a_plan(a_spec("a"), a_spec("b"), a_spec("c", "b"), on_failure="stop")
    ledger = a_ledger(plan, running(0), running(1), *waiting(2))
    ledger.happen(1, Succeeded(1))
    ledger.happen(0, FAILURE)

    ledger.tell()

    child = ledger.task(2)
    assert child is not None
    assert (child.state, child.waiting) == (TaskState.PENDING, 1)
