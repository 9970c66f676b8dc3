"""Pauses: what goes on, what waits aside, and how a run is taken up again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import NOON, a_task
from tests.domain.ledgers import FAN_OUT, a_ledger, running, waiting
from tests.domain.plans import a_node, a_plan, a_spec
from tests.domain.run_oracle import expected_endings
from tests.domain.run_scripts import SESSION, Script, play, scripts
from tests.domain.run_stage import Stage
from tests.domain.task_moves import LATER, after, failed, tried
from tidemill.domain.events import Admitted, Due, Granted, Held, Lost, Released, Succeeded
from tidemill.domain.facts import FactType
from tidemill.domain.identifiers import SECOND
from tidemill.domain.run import RunState
from tidemill.domain.task_run import ALONE, PAUSED, Reason, TaskState
from tidemill.domain.workflow import RetryPolicy, Timeouts

IMPATIENT = a_node(timeouts=Timeouts(queue_seconds=5))
FRAGILE = a_node(retry=RetryPolicy(max_losses=1))


def test_what_is_held_waits_without_a_timer() -> None:
    task = after(a_task(due_at=NOON), Held(), IMPATIENT)

    assert (task.state, task.hold, task.due_at) == (TaskState.READY, PAUSED, None)


def test_what_is_admitted_begins_its_wait_in_the_queue_anew() -> None:
    task = after(a_task(hold=PAUSED, ready_at=NOON), Admitted(), IMPATIENT)

    assert (task.hold, task.ready_at, task.due_at) == (None, LATER, LATER + 5 * SECOND)


def test_a_suspect_that_is_admitted_is_still_to_run_alone() -> None:
    held = after(a_task(losses=1, hold=ALONE), Held(), FRAGILE)

    assert held.hold == PAUSED
    assert after(held, Admitted(), FRAGILE).hold == ALONE


def test_what_is_held_or_admitted_already_or_granted_meanwhile_stays_as_it_is() -> None:
    assert tried(a_task(hold=PAUSED), Held()) is None
    assert tried(a_task(), Admitted()) is None
    assert tried(a_task(state=TaskState.RUNNING), Held()) is None
    assert tried(a_task(state=TaskState.SUCCEEDED), Admitted()) is None


def test_children_of_what_ends_in_a_paused_run_are_ready_and_held() -> None:
    ledger = a_ledger(FAN_OUT, running(), *waiting(1, 2, 3, 4), state=RunState.PAUSED)

    ledger.happen(0, Succeeded(1))
    ledger.tell()

    assert {task.hold for task in ledger.changed_tasks()[1:]} == {PAUSED}
    assert ledger.ready_tasks() == []


def test_what_comes_back_to_a_paused_run_is_held() -> None:
    backoff = a_task(position=3, state=TaskState.BACKOFF, due_at=NOON, failures=1)
    rows = [running(1), running(2), backoff]
    ledger = a_ledger(FAN_OUT, *rows, state=RunState.PAUSED)

    ledger.happen(1, Released(1))
    ledger.happen(2, Lost(1, SESSION))
    ledger.happen(3, Due(0, TaskState.BACKOFF))

    held = [(task.state, task.hold) for task in ledger.changed_tasks()]
    assert held == [(TaskState.READY, PAUSED)] * 3
    assert len(ledger.journal.attempts) == 2


def test_a_failure_in_a_paused_run_is_retried_later() -> None:
    ledger = a_ledger(FAN_OUT, running(1), state=RunState.PAUSED)

    ledger.happen(1, failed())

    assert ledger.changed_tasks()[0].state in {TaskState.BACKOFF, TaskState.FAILED}


def test_a_wait_that_is_over_before_the_task_is_held_does_not_fail_it() -> None:
    ledger = a_ledger(FAN_OUT, a_task(due_at=NOON), state=RunState.PAUSED)

    ledger.happen(0, Due(0, TaskState.READY))

    assert ledger.task(0) == a_task(run_id=ledger.changed_tasks()[0].run_id, hold=PAUSED)


def test_a_sweep_remembers_how_far_it_has_come() -> None:
    stage = Stage(a_plan(*(a_spec(f"t{place}") for place in range(5))), rows_max=100)
    stage.turn()
    stage.turn()
    stage.pause()
    stage.rows_max = 2

    swept = [stage.turn().run.swept for _ in range(3)]

    assert swept == [2, 4, None]
    assert [task.hold for task in stage.tasks.values()] == [PAUSED] * 5


def test_a_pause_in_the_middle_of_resuming_holds_everything_again() -> None:
    stage = Stage(a_plan(*(a_spec(f"t{place}") for place in range(5))), rows_max=100)
    for step in (stage.turn, stage.turn, stage.pause, stage.turn, stage.resume):
        step()
    stage.rows_max = 2
    stage.turn()

    stage.pause()
    while stage.turn().unfinished:
        pass

    assert [task.hold for task in stage.tasks.values()] == [PAUSED] * 5


def test_a_paused_run_is_cancelled_with_all_that_is_held() -> None:
    stage = Stage(FAN_OUT, rows_max=100)
    for step in (stage.turn, stage.turn, stage.pause, stage.turn):
        step()

    stage.stop(Reason.CANCELLED)
    stage.turn()

    assert stage.run.state is RunState.CANCELLED
    assert set(stage.states().values()) == {TaskState.CANCELLED}


def test_what_comes_back_to_a_run_that_is_being_stopped_is_not_granted_again() -> None:
    ledger = a_ledger(FAN_OUT, running(), *waiting(1, 2, 3, 4))

    ledger.stop(Reason.TASK_FAILED)
    ledger.happen(0, Released(1))

    assert [task.state for task in ledger.changed_tasks()] == [TaskState.READY]
    assert ledger.ready_tasks() == []


def test_a_paused_run_ends_with_the_last_of_what_ran() -> None:
    stage = Stage(a_plan(a_spec("only")), rows_max=100)
    stage.turn()
    stage.turn()
    stage.happen((0, Granted(SESSION)))
    stage.pause()

    stage.happen((0, Succeeded(1)))

    assert stage.run.state is RunState.SUCCEEDED
    assert stage.facts[-1].type is FactType.WORKFLOW_COMPLETED


# Properties


def play_with_pauses(script: Script, stage: Stage, steps: list[int]) -> None:
    """Let the run go on, pausing and resuming it after so many steps each."""
    for place, count in enumerate(steps):
        play(script, stage, lambda _, step, count=count: step >= count)  # type: ignore[misc]
        if stage.ended or stage.run.stop is not None:
            break
        stage.resume() if place % 2 else stage.pause()
    if stage.run.state is RunState.PAUSED:
        stage.resume()
    play(script, stage)


@settings(max_examples=150, deadline=None)
@given(scripts(), st.lists(st.integers(0, 8), max_size=6))
def test_pauses_change_nothing_in_how_a_run_ends(script: Script, steps: list[int]) -> None:
    stage = script.stage()

    play_with_pauses(script, stage, steps)

    assert stage.states() == expected_endings(script.plan, script.ending_of)
    assert stage.run.swept is None


@settings(max_examples=100, deadline=None)
@given(scripts(), st.integers(0, 12))
def test_nothing_of_a_paused_run_begins_once_its_tasks_are_held(script: Script, steps: int) -> None:
    stage = play(script, script.stage(), lambda _, step: step >= steps)
    if stage.ended:
        return
    stage.pause()
    while stage.run.state is RunState.PAUSED and stage.turn().unfinished:
        if stage.run.started_at is None:
            break  # tasks are not written while it is paused

    play(script, stage, lambda stage, _: not stage.in_state(*IN_HAND))

    assert stage.ended or stage.run.state is RunState.PAUSED
    assert all(stage.tasks[one].hold == PAUSED for one in stage.in_state(TaskState.READY))


IN_HAND = (TaskState.RUNNING, TaskState.BACKOFF, TaskState.CANCELLING)


@settings(max_examples=100, deadline=None)
@given(scripts(), st.integers(0, 12), st.sampled_from([Reason.CANCELLED, Reason.TIMEOUT]))
def test_a_paused_run_that_is_stopped_ends_with_nothing_open(
    script: Script, steps: int, reason: Reason
) -> None:
    stage = play(script, script.stage(), lambda _, step: step >= steps)
    if stage.ended:
        return
    stage.pause()

    stage.stop(reason)
    play(script, stage)

    assert (stage.run.open, stage.run.reason) == (0, reason)
