"""The ledger, rule by rule; whole runs are in test_ledger_properties."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import a_run, a_session_id, a_task
from tests.domain.ledgers import CHAIN, FAILURE, FAN_OUT, LATER, a_ledger, kinds, running, waiting
from tests.domain.legal_moves import ERROR
from tests.domain.plans import a_plan, a_spec
from tidemill.domain.events import Failed, Lost, Released, Succeeded
from tidemill.domain.fact_builders import ERROR_CHARACTERS_MAX, run_fact
from tidemill.domain.facts import FactType
from tidemill.domain.identifiers import SessionId
from tidemill.domain.ledger import new_task
from tidemill.domain.plan import Plan
from tidemill.domain.run import Run, RunState
from tidemill.domain.task_run import Reason, TaskError, TaskKind, TaskState

SESSION = SessionId("session-0")


# Events


def test_an_event_changes_a_row_and_tells_one_fact() -> None:
    ledger = a_ledger(CHAIN, running())

    assert ledger.happen(0, Succeeded(1, b"42"))

    (task,) = ledger.changed_tasks()
    assert (task.state, task.ended_no, task.told) == (TaskState.SUCCEEDED, 1, 0)
    assert ledger.journal.results == [(task.key, b"42")]
    assert kinds(ledger) == [FactType.TASK_COMPLETED]


def test_a_fact_says_what_the_row_says() -> None:
    task = a_task(position=1, state=TaskState.RUNNING, epoch=3, failures=1, losses=1)
    ledger = a_ledger(CHAIN, task, generation=2)

    ledger.happen(1, Failed(epoch=3, error=ERROR, final=True))

    (fact,) = ledger.journal.facts
    assert (fact.type, fact.state, fact.at) == (FactType.TASK_FAILED, "FAILED", LATER)
    assert (fact.task, fact.position, fact.epoch, fact.generation) == ("b", 1, 3, 2)
    assert (fact.failures, fact.losses, fact.attempt) == (2, 1, 3)
    assert (fact.reason, fact.error) == ("final_error", "ValueError: no such order")


def test_the_error_in_a_fact_has_a_bound() -> None:
    ledger = a_ledger(CHAIN, running())

    ledger.happen(0, Failed(epoch=1, error=TaskError(type="E", message="x" * 5_000)))

    assert ledger.journal.facts[0].error is not None
    assert len(ledger.journal.facts[0].error) == ERROR_CHARACTERS_MAX


def test_a_result_of_null_needs_no_row() -> None:
    ledger = a_ledger(CHAIN, running())

    ledger.happen(0, Succeeded(1))

    assert ledger.journal.results == []


def test_a_stale_event_changes_nothing() -> None:
    ledger = a_ledger(CHAIN, running())

    assert not ledger.happen(0, Succeeded(0, b"42"))

    assert (ledger.changed_tasks(), ledger.journal.facts, ledger.journal.results) == ([], [], [])
    assert ledger.changed_run() is None


def test_an_event_for_a_row_that_is_not_here_is_too_late() -> None:
    assert not a_ledger(CHAIN).happen(0, Succeeded(1))


def test_a_row_that_has_moved_on_is_not_taken_back() -> None:
    ledger = a_ledger(CHAIN, running())
    ledger.happen(0, Succeeded(1))

    ledger.supply([running()])

    assert ledger.changed_tasks()[0].state is TaskState.SUCCEEDED


def test_an_attempt_that_another_one_follows_is_kept() -> None:
    ledger = a_ledger(CHAIN, running())

    ledger.happen(0, Failed(epoch=1, error=ERROR))

    assert [attempt.reason for attempt in ledger.journal.attempts] == [Reason.FAILED]
    assert kinds(ledger) == [FactType.TASK_RETRYING]


@pytest.mark.parametrize(
    ("event", "kind"),
    [(Lost(1, SESSION), FactType.TASK_RETRYING), (Released(1), FactType.TASK_READY)],
)
def test_a_lost_attempt_is_told_as_a_retry_and_a_release_is_not(
    event: Lost | Released, kind: FactType
) -> None:
    ledger = a_ledger(CHAIN, running())

    ledger.happen(0, event)

    assert (kinds(ledger), ledger.journal.facts[0].state) == ([kind], "READY")


def test_a_grant_returns_the_task_as_granted() -> None:
    ledger = a_ledger(CHAIN, a_task())
    session_id = a_session_id()

    task = ledger.grant(0, session_id)

    assert (task.state, task.session_id, task.epoch) == (TaskState.RUNNING, session_id, 1)
    assert ledger.task(0) is task


def test_only_a_row_that_is_here_is_granted() -> None:
    with pytest.raises(AssertionError, match="only a supplied READY row"):
        a_ledger(CHAIN).grant(0, a_session_id())


# Telling


def test_an_ending_makes_its_children_ready() -> None:
    ledger = a_ledger(FAN_OUT, running())
    ledger.happen(0, Succeeded(1))

    assert ledger.wanted() == [1, 2, 3, 4]
    ledger.supply(waiting(1, 2, 3, 4))
    ledger.tell()

    assert [task.position for task in ledger.ready_tasks()] == [1, 2, 3, 4]
    assert ledger.changed_tasks()[0].told is None
    assert (ledger.wanted(), ledger.unfinished) == ([], False)


def test_a_suspect_task_is_not_among_the_ready_ones() -> None:
    task = a_task(state=TaskState.RUNNING, losses=2)
    ledger = a_ledger(a_plan(a_spec()), task)

    ledger.happen(0, Lost(1, SESSION))

    assert ledger.changed_tasks()[0].state is TaskState.READY
    assert ledger.ready_tasks() == []


def test_a_turn_tells_no_more_children_than_its_bound() -> None:
    ledger = a_ledger(FAN_OUT, running(), *waiting(1, 2, 3, 4), rows_max=3)
    ledger.happen(0, Succeeded(1))

    ledger.tell()

    assert [task.position for task in ledger.ready_tasks()] == [1, 2, 3]
    assert ledger.changed_tasks()[0].told == 3
    assert (ledger.wanted(), ledger.unfinished) == ([], True)


def test_what_was_left_to_tell_is_taken_up_by_the_next_turn() -> None:
    parent = a_task(state=TaskState.SUCCEEDED, told=3)
    ledger = a_ledger(FAN_OUT, parent)

    assert ledger.wanted() == [4]
    ledger.supply(waiting(4))
    ledger.tell()

    assert [task.position for task in ledger.ready_tasks()] == [4]
    assert not ledger.unfinished


def test_rows_left_to_take_up_are_for_the_next_turn() -> None:
    ledger = a_ledger(CHAIN)

    ledger.take_up([], more=True)

    assert ledger.unfinished


def test_telling_waits_for_rows_that_are_not_here() -> None:
    ledger = a_ledger(FAN_OUT, running(), *waiting(1, 3, 4))
    ledger.happen(0, Succeeded(1))

    ledger.tell()

    assert (ledger.changed_tasks()[0].told, ledger.wanted()) == (1, [2])


def test_a_failure_fetches_its_way_down_in_one_go() -> None:
    ledger = a_ledger(CHAIN, running())
    ledger.happen(0, FAILURE)

    assert ledger.wanted() == [1, 2, 3]
    ledger.supply(waiting(1, 2, 3))
    ledger.tell()
    ledger.settle()

    assert kinds(ledger) == [
        FactType.TASK_FAILED,
        *[FactType.TASK_UPSTREAM_FAILED] * 3,
        FactType.WORKFLOW_FAILED,
    ]


def test_a_success_fetches_only_its_children() -> None:
    ledger = a_ledger(CHAIN, running())

    ledger.happen(0, Succeeded(1))

    assert ledger.wanted() == [1]


def test_the_way_down_is_fetched_once_where_branches_meet() -> None:
    diamond = a_plan(a_spec("a"), a_spec("b", "a"), a_spec("c", "a"), a_spec("d", "b", "c"))
    ledger = a_ledger(diamond, running())

    ledger.happen(0, FAILURE)

    assert ledger.wanted() == [1, 2, 3]


def test_no_more_rows_are_wanted_than_the_bound_allows() -> None:
    ledger = a_ledger(CHAIN, running(), rows_max=2)

    ledger.happen(0, FAILURE)

    assert ledger.wanted() == [1, 2]


def test_a_child_that_ran_in_spite_of_its_parent_is_not_told_again() -> None:
    child = a_task(position=1, state=TaskState.RUNNING)
    ledger = a_ledger(a_plan(a_spec("a"), a_spec("b", "a")), running(), child)
    ledger.happen(0, Succeeded(1))

    ledger.tell()

    assert ledger.task(1) is child
    assert not ledger.unfinished


# The run as a whole


def a_pending_run(plan: Plan, **fields: Any) -> dict[str, Any]:
    return {"state": RunState.PENDING, "next_position": 0, "open": len(plan.nodes), **fields}


def test_a_large_run_unfolds_in_chunks() -> None:
    ledger = a_ledger(FAN_OUT, rows_max=3, **a_pending_run(FAN_OUT))

    ledger.unfold()

    assert [(task.position, task.waiting) for task in ledger.journal.new_tasks] == [
        (0, 0),
        (1, 1),
        (2, 1),
    ]
    assert (ledger.run.state, ledger.run.next_position) == (RunState.PENDING, 3)
    assert (ledger.journal.facts, ledger.unfinished) == ([], True)


def test_the_last_chunk_starts_the_run() -> None:
    ledger = a_ledger(FAN_OUT, rows_max=3, **a_pending_run(FAN_OUT, next_position=3))

    ledger.unfold()

    assert [task.position for task in ledger.journal.new_tasks] == [3, 4]
    assert (ledger.run.state, ledger.run.told) == (RunState.RUNNING, 0)
    assert (kinds(ledger), ledger.unfinished) == ([FactType.WORKFLOW_STARTED], True)
    assert ledger.wanted() == [0]


def test_a_run_that_was_stopped_while_it_unfolded_goes_on_to_be_stopped() -> None:
    ledger = a_ledger(FAN_OUT, **a_pending_run(FAN_OUT, stop=Reason.CANCELLED))

    ledger.unfold()
    ledger.tell()
    ledger.stop_tasks([], more=False)

    assert (ledger.run.state, ledger.run.told) == (RunState.RUNNING, None)
    assert ledger.unfinished


def test_only_a_pending_run_unfolds() -> None:
    with pytest.raises(AssertionError):
        a_ledger(FAN_OUT).unfold()


def test_roots_become_ready_within_the_bound_of_the_turn() -> None:
    plan = a_plan(a_spec("a"), a_spec("b"), a_spec("c"))
    ledger = a_ledger(plan, *waiting(0, 1, 2, parents=0), rows_max=2, told=0)

    ledger.tell()

    assert [task.position for task in ledger.ready_tasks()] == [0, 1]
    assert (ledger.run.told, ledger.unfinished) == (2, True)


def test_a_new_task_has_what_the_definition_says() -> None:
    spec = a_spec("b", "a", priority=7, queue="mail", labels={"gpu": "a"})
    plan = a_plan(a_spec("a"), spec, output="b")
    run = a_run()

    task = new_task(run, plan.nodes[1])

    assert (task.run_id, task.position, task.node, task.kind) == (run.id, 1, 1, TaskKind.TASK)
    assert (task.state, task.waiting, task.epoch) == (TaskState.PENDING, 1, 0)
    assert (task.priority, task.route) == (7, "mail!noop?gpu=a")
    assert new_task(run, plan.nodes[2]).kind is TaskKind.OUTPUT


def test_a_run_ends_with_its_last_task() -> None:
    ledger = a_ledger(a_plan(a_spec()), running())

    ledger.settle()
    assert ledger.run.state is RunState.RUNNING
    ledger.happen(0, Succeeded(1))
    ledger.settle()

    assert (ledger.run.state, ledger.run.open, ledger.run.ended) == (RunState.SUCCEEDED, 0, 1)
    assert kinds(ledger) == [FactType.TASK_COMPLETED, FactType.WORKFLOW_COMPLETED]


def test_settling_twice_tells_nothing_new() -> None:
    ledger = a_ledger(a_plan(a_spec()), running())
    ledger.happen(0, FAILURE)

    ledger.settle()
    ledger.settle()

    assert kinds(ledger) == [FactType.TASK_FAILED, FactType.WORKFLOW_FAILED]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({}, None), ({"stop": Reason.TIMEOUT}, "timeout"), ({"reason": Reason.LOST}, "lost")],
)
def test_a_fact_of_a_run_says_why(fields: dict[str, Any], reason: str | None) -> None:
    run: Run = a_run(generation=3, **fields)

    fact = run_fact(run, FactType.WORKFLOW_STOPPING, LATER)

    assert (fact.run_id, fact.position, fact.task) == (run.id, None, None)
    assert (fact.state, fact.generation, fact.reason) == ("RUNNING", 3, reason)
