"""Whole runs through ledgers, compared with an oracle that knows nothing of turns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.run_oracle import expected_endings
from tests.domain.run_scripts import Script, large_script, play, scripts
from tidemill.domain.facts import FactType
from tidemill.domain.ledger import STOPPABLE
from tidemill.domain.run import RunState
from tidemill.domain.task_run import ENDED, Reason, TaskState


@settings(max_examples=150, deadline=None)
@given(scripts())
def test_a_run_in_small_turns_ends_as_its_rules_say(script: Script) -> None:
    stage = play(script, script.stage())

    endings = expected_endings(script.plan, script.ending_of)
    assert stage.states() == endings
    failed = TaskState.FAILED in endings.values()
    assert stage.run.state is (RunState.FAILED if failed else RunState.SUCCEEDED)
    assert stage.untold == []


@pytest.mark.parametrize("seed", range(8))
def test_a_larger_run_in_small_turns_ends_as_its_rules_say(seed: int) -> None:
    script = large_script(seed, tasks=60)

    stage = play(script, script.stage())

    assert stage.states() == expected_endings(script.plan, script.ending_of)


@settings(max_examples=50, deadline=None)
@given(scripts(), st.integers(1, 5))
def test_a_run_unfolded_in_chunks_is_the_run_unfolded_at_once(script: Script, chunk: int) -> None:
    in_chunks, at_once = script.stage(chunk), script.stage(1_000)

    for stage in (in_chunks, at_once):
        while stage.turn().unfinished or stage.untold:
            pass

    assert in_chunks.states() == at_once.states()
    assert (in_chunks.run.open, in_chunks.run.state) == (at_once.run.open, at_once.run.state)


@settings(max_examples=50, deadline=None)
@given(scripts())
def test_the_bound_of_a_turn_never_changes_the_result(script: Script) -> None:
    script.noise = {}
    small = play(script, script.stage(1))

    large = play(script, script.stage(10_000))

    assert small.states() == large.states()
    assert small.run.state is large.run.state


@settings(max_examples=100, deadline=None)
@given(scripts(), st.integers(0, 25), st.sampled_from([Reason.CANCELLED, Reason.TIMEOUT]))
def test_a_run_that_is_stopped_ends_with_nothing_open(
    script: Script, steps: int, reason: Reason
) -> None:
    stage = play(script, script.stage(), lambda _, step: step >= steps)
    ended_before = {place: state for place, state in stage.states().items() if state in ENDED}
    live = not stage.ended

    stage.stop(reason)
    play(script, stage)

    assert stage.run.open == 0
    assert ended_before.items() <= stage.states().items()
    if live:
        stopped = RunState.CANCELLED if reason is Reason.CANCELLED else RunState.FAILED
        assert (stage.run.state, stage.run.reason) == (stopped, reason)


@settings(max_examples=100, deadline=None)
@given(scripts(on_failure="stop"))
def test_the_first_failure_stops_a_run_that_asks_for_it(script: Script) -> None:
    stage = play(script, script.stage())

    failures = stage.in_state(TaskState.FAILED)
    stops = [fact for fact in stage.facts if fact.type is FactType.WORKFLOW_STOPPING]
    assert len(stops) == bool(failures)
    assert stage.run.state is (RunState.FAILED if failures else RunState.SUCCEEDED)
    assert stage.in_state(*STOPPABLE, TaskState.CANCELLING) == []
    if not failures:
        assert stage.states() == expected_endings(script.plan, script.ending_of)


@settings(max_examples=50, deadline=None)
@given(scripts())
def test_facts_come_in_an_order_in_which_they_follow_from_each_other(script: Script) -> None:
    stage = play(script, script.stage())

    seen: set[int] = set()
    for fact in stage.facts:
        if fact.position is None:
            continue
        assert set(script.plan.nodes[fact.position].parents) <= seen
        if fact.state in ENDED:
            seen.add(fact.position)
    assert stage.facts[-1].position is None
