"""Replay: what runs again, what stays, and what the counters say."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.domain.legal_moves import ERROR
from tests.domain.plans import a_plan, a_spec
from tests.domain.run_oracle import expected_endings
from tests.domain.run_scripts import SESSION, Script, play, scripts
from tests.domain.run_stage import Stage
from tidemill.domain.errors import Conflict
from tidemill.domain.events import Failed, Granted, Succeeded
from tidemill.domain.facts import FactType
from tidemill.domain.identifiers import SECOND
from tidemill.domain.ledger import Journal, Ledger
from tidemill.domain.plan import Plan
from tidemill.domain.reopening import replay, retry_failed
from tidemill.domain.run import RunState
from tidemill.domain.task_run import PAUSED, Reason, TaskState
from tidemill.domain.workflow import TriggerRule

UNRUN = {TaskState.PENDING, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED, TaskState.CANCELLED}


def replayed(stage: Stage, position: int) -> None:
    """One transaction that has every row of the run, as a replay does."""

    def act(ledger: Ledger) -> None:
        ledger.supply(stage.tasks.values())
        replay(ledger, position)

    stage.turn(act, take_up=False)


def retried(stage: Stage) -> None:
    """One transaction that tries everything again that failed."""

    def act(ledger: Ledger) -> None:
        ledger.supply(stage.tasks.values())
        retry_failed(ledger)

    stage.turn(act, take_up=False)


def run_task(stage: Stage, position: int, *, fail: bool = False) -> None:
    stage.happen((position, Granted(SESSION)))
    epoch = stage.tasks[position].epoch
    failure = Failed(epoch=epoch, error=ERROR, final=True)
    stage.happen((position, failure if fail else Succeeded(epoch)))


def started(plan: Plan) -> Stage:
    stage = Stage(plan, rows_max=100)
    stage.turn()
    stage.turn()
    return stage


def named(stage: Stage) -> dict[str, TaskState]:
    return {stage.plan.nodes[place].id: state for place, state in stage.states().items()}


CHAIN = a_plan(a_spec("fetch"), a_spec("pay", "fetch"), a_spec("send", "pay"), timeout_seconds=60)


def a_failed_chain() -> Stage:
    stage = started(CHAIN)
    run_task(stage, 0, fail=True)
    assert stage.run.state is RunState.FAILED
    return stage


def test_what_could_not_run_waits_again() -> None:
    stage = a_failed_chain()

    replayed(stage, 0)

    assert named(stage) == {
        "fetch": TaskState.READY,
        "pay": TaskState.PENDING,
        "send": TaskState.PENDING,
    }
    assert (stage.run.state, stage.run.open, stage.run.failed) == (RunState.RUNNING, 3, 0)


def test_a_replay_is_a_new_generation_with_a_new_deadline() -> None:
    stage = a_failed_chain()

    replayed(stage, 0)

    assert (stage.run.generation, stage.run.due_at) == (2, stage.now + 60 * SECOND)
    reopened = [fact for fact in stage.facts if fact.type is FactType.WORKFLOW_REOPENED]
    assert [fact.generation for fact in reopened] == [2]


def test_a_replayed_run_goes_on_to_its_end() -> None:
    stage = a_failed_chain()

    replayed(stage, 0)
    for position in range(3):
        run_task(stage, position)

    assert set(named(stage).values()) == {TaskState.SUCCEEDED}
    assert (stage.run.state, stage.run.reason) == (RunState.SUCCEEDED, None)


def test_what_ran_in_spite_of_the_failure_does_not_run_again() -> None:
    rule = TriggerRule.ONE_FAILED
    stage = started(a_plan(a_spec("pay"), a_spec("alarm", "pay", trigger=rule)))
    run_task(stage, 0, fail=True)
    run_task(stage, 1)

    replayed(stage, 0)
    run_task(stage, 0)

    assert set(named(stage).values()) == {TaskState.SUCCEEDED}
    assert stage.run.state is RunState.SUCCEEDED
    assert stage.tasks[1].epoch == 1


def test_a_second_dead_letter_keeps_the_run_failed() -> None:
    stage = started(a_plan(a_spec("a"), a_spec("b"), a_spec("c", "a", "b")))
    run_task(stage, 0, fail=True)
    run_task(stage, 1, fail=True)

    replayed(stage, 0)
    assert (stage.tasks[2].waiting, stage.tasks[2].failed) == (1, 1)
    run_task(stage, 0)

    assert named(stage)["c"] is TaskState.UPSTREAM_FAILED
    assert stage.run.state is RunState.FAILED


def test_all_that_a_stop_cancelled_waits_again() -> None:
    plan = a_plan(a_spec("a"), a_spec("b"), a_spec("c", "b"), on_failure="stop")
    stage = started(plan)
    run_task(stage, 0, fail=True)
    assert set(named(stage).values()) == {TaskState.FAILED, TaskState.CANCELLED}

    replayed(stage, 0)

    assert named(stage) == {"a": TaskState.READY, "b": TaskState.READY, "c": TaskState.PENDING}
    assert stage.run.stop is None


def test_a_run_that_is_being_stopped_is_not_replayed() -> None:
    stage = started(a_plan(a_spec("a"), a_spec("b"), on_failure="stop"))
    stage.happen((1, Granted(SESSION)))
    run_task(stage, 0, fail=True)

    with pytest.raises(Conflict, match="try again when it has ended"):
        replayed(stage, 0)


def test_only_a_dead_letter_is_replayed() -> None:
    stage = a_failed_chain()

    with pytest.raises(Conflict, match="this one is UPSTREAM_FAILED"):
        replayed(stage, 1)
    with pytest.raises(Conflict, match="this one does not exist"):
        replayed(stage, 3)


def test_a_replay_needs_every_row_of_the_run() -> None:
    stage = a_failed_chain()
    ledger = Ledger(stage.run, stage.plan, stage.now, lambda: 0.5, 100, Journal())
    ledger.supply([stage.tasks[0]])

    with pytest.raises(AssertionError, match="every row of the run"):
        replay(ledger, 0)


def test_a_replay_counts_only_parents_that_have_told_a_task() -> None:
    leaves = [a_spec(f"leaf{place}", "dead", "slow") for place in range(8)]
    stage = started(a_plan(a_spec("dead"), a_spec("slow"), *leaves))
    stage.rows_max = 1
    run_task(stage, 1)
    run_task(stage, 0, fail=True)
    assert [(task.position, task.told) for task in stage.untold] == [(0, 0), (1, 3)]

    replayed(stage, 0)

    assert [stage.tasks[place].waiting for place in range(2, 10)] == [1] * 4 + [2] * 4
    assert [(task.position, task.told) for task in stage.untold] == [(1, 4)]


def test_a_retry_replays_all_dead_letters_at_once() -> None:
    stage = started(a_plan(a_spec("a"), a_spec("b"), a_spec("c", "a", "b"), a_spec("d")))
    for position in (0, 1):
        run_task(stage, position, fail=True)
    run_task(stage, 3)

    retried(stage)

    assert named(stage) == {
        "a": TaskState.READY,
        "b": TaskState.READY,
        "c": TaskState.PENDING,
        "d": TaskState.SUCCEEDED,
    }
    assert (stage.tasks[2].waiting, stage.tasks[2].failed) == (2, 0)
    assert (stage.run.generation, stage.run.failed, stage.run.open) == (2, 0, 3)


def test_a_retry_of_a_cancelled_run_goes_on_with_what_was_cancelled() -> None:
    stage = started(CHAIN)
    run_task(stage, 0)
    stage.stop(Reason.CANCELLED)
    stage.turn()
    assert stage.run.state is RunState.CANCELLED

    retried(stage)

    assert list(named(stage).values()) == [
        TaskState.SUCCEEDED,
        TaskState.READY,
        TaskState.PENDING,
    ]
    assert (stage.run.state, stage.run.stop) == (RunState.RUNNING, None)


def test_a_paused_run_is_retried_and_stays_paused() -> None:
    stage = started(a_plan(a_spec("a"), a_spec("b")))
    run_task(stage, 0, fail=True)
    stage.pause()

    retried(stage)

    assert (stage.run.state, stage.run.generation) == (RunState.PAUSED, 2)
    assert stage.tasks[0].hold == PAUSED


def test_there_must_be_something_to_try_again() -> None:
    stage = started(a_plan(a_spec("only")))

    with pytest.raises(Conflict, match="the run is RUNNING and no task of it failed") as refused:
        retried(stage)

    assert refused.value.code == "NOTHING_FAILED"


def test_a_run_that_is_being_stopped_is_not_retried() -> None:
    stage = started(a_plan(a_spec("a"), a_spec("b"), on_failure="stop"))
    stage.happen((1, Granted(SESSION)))
    run_task(stage, 0, fail=True)

    with pytest.raises(Conflict) as refused:
        retried(stage)

    assert refused.value.code == "STOPPING"


# Properties


def endings_after_replay(stage: Stage, position: int) -> dict[int, TaskState]:
    """How the run must end if from now on every task that runs succeeds."""
    states = stage.states()
    again = {position}
    queue = [position]
    while queue:
        for child in stage.plan.nodes[queue.pop()].children:
            if child not in again and states[child] in UNRUN:
                again.add(child)
                queue.append(child)
    if stage.run.stop is not None:
        again |= {place for place, state in states.items() if state is TaskState.CANCELLED}
    runs = {TaskState.READY, TaskState.RUNNING, TaskState.BACKOFF}
    decided = {
        place: TaskState.SUCCEEDED if state in runs else state
        for place, state in states.items()
        if place not in again and state is not TaskState.PENDING
    }
    decided[position] = TaskState.SUCCEEDED
    return expected_endings(stage.plan, lambda _: TaskState.SUCCEEDED, decided)


def replay_and_mend(script: Script, stage: Stage) -> None:
    dead = stage.in_state(TaskState.FAILED)
    assume(dead)
    position = script.random.choice(dead)
    expected = endings_after_replay(stage, position)

    replayed(stage, position)
    script.mend()
    play(script, stage)

    assert stage.states() == expected
    failed = TaskState.FAILED in expected.values()
    assert stage.run.state is (RunState.FAILED if failed else RunState.SUCCEEDED)


@settings(max_examples=150, deadline=None)
@given(scripts())
def test_a_run_that_ended_goes_on_from_a_dead_letter(script: Script) -> None:
    assume(any(script.dooms))
    stage = play(script, script.stage())

    replay_and_mend(script, stage)


@settings(max_examples=200, deadline=None)
@given(scripts(), st.integers(1, 3), st.integers(0, 5))
def test_a_dead_letter_is_replayed_while_the_run_goes_on(
    script: Script, rows_max: int, more: int
) -> None:
    assume(any(script.dooms))
    stage = script.stage(rows_max)
    play(script, stage, lambda stage, _: bool(stage.in_state(TaskState.FAILED)))
    play(script, stage, lambda _, step: step >= more)

    replay_and_mend(script, stage)


@settings(max_examples=100, deadline=None)
@given(scripts(on_failure="stop"))
def test_a_run_that_a_failure_stopped_goes_on_from_its_dead_letter(script: Script) -> None:
    assume(any(script.dooms))
    stage = play(script, script.stage())

    replay_and_mend(script, stage)


@settings(max_examples=150, deadline=None)
@given(scripts(), st.integers(0, 5), st.sampled_from([Reason.CANCELLED, Reason.TIMEOUT]))
def test_a_run_that_somebody_stopped_goes_on_from_a_dead_letter(
    script: Script, more: int, reason: Reason
) -> None:
    assume(any(script.dooms))
    stage = script.stage()
    play(script, stage, lambda stage, _: bool(stage.in_state(TaskState.FAILED)))
    play(script, stage, lambda _, step: step >= more)
    stage.stop(reason)
    play(script, stage)

    replay_and_mend(script, stage)


@settings(max_examples=100, deadline=None)
@given(scripts(on_failure="stop"), st.integers(1, 3))
def test_replaying_dead_letters_one_by_one_brings_every_run_to_success(
    script: Script, rows_max: int
) -> None:
    stage = play(script, script.stage(rows_max))

    script.mend()
    for _ in range(len(script.plan.nodes)):
        for position in stage.in_state(TaskState.FAILED)[:1]:
            replayed(stage, position)
            play(script, stage)

    assert stage.run.state is RunState.SUCCEEDED


@settings(max_examples=150, deadline=None)
@given(
    scripts(),
    st.integers(0, 25),
    st.sampled_from([None, Reason.CANCELLED, Reason.TIMEOUT]),
)
def test_a_retry_brings_every_run_that_failed_or_was_stopped_to_success(
    script: Script, steps: int, reason: Reason | None
) -> None:
    stage = play(script, script.stage(), lambda _, step: step >= steps)
    if reason is not None:
        stage.stop(reason)
    play(script, stage)
    assume(stage.run.state is not RunState.SUCCEEDED)

    retried(stage)
    script.mend()
    play(script, stage)

    assert stage.run.state is RunState.SUCCEEDED
    assert stage.run.generation == 2
    assert not stage.in_state(TaskState.FAILED, TaskState.UPSTREAM_FAILED, TaskState.CANCELLED)
