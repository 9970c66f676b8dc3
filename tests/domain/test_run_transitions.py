"""The state machine of a run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import NOON, a_run
from tidemill.domain.errors import IllegalTransition
from tidemill.domain.identifiers import SECOND
from tidemill.domain.run import RUN_ENDED, RunState
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
from tidemill.domain.task_run import Reason

LATER = NOON + SECOND
GOING = {RunState.RUNNING, RunState.PAUSED}
REOPENABLE = {RunState.RUNNING, RunState.FAILED, RunState.CANCELLED}


def test_a_run_whose_tasks_are_written_starts_with_no_root_told() -> None:
    run = advance_run(a_run(state=RunState.PENDING), Unfolded(), LATER)

    assert (run.state, run.told, run.started_at) == (RunState.RUNNING, 0, LATER)


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.PENDING}))
def test_a_run_unfolds_once(state: RunState) -> None:
    with pytest.raises(IllegalTransition, match=f"no Unfolded from {state}"):
        advance_run(a_run(state=state), Unfolded(), LATER)


@pytest.mark.parametrize("state", [RunState.PENDING, RunState.RUNNING])
def test_a_stop_keeps_the_state_and_ends_the_wait_for_the_deadline(state: RunState) -> None:
    run = advance_run(a_run(state=state, due_at=NOON), StopAsked(Reason.TIMEOUT), LATER)

    assert (run.state, run.stop, run.due_at) == (state, Reason.TIMEOUT, None)


@pytest.mark.parametrize(
    "fields", [{"stop": Reason.TIMEOUT}, *({"state": state} for state in RUN_ENDED)]
)
def test_stopping_twice_or_too_late_changes_nothing(fields: dict[str, Any]) -> None:
    run = a_run(**fields)

    assert advance_run(run, StopAsked(Reason.CANCELLED), LATER) is run


@pytest.mark.parametrize(
    ("stop", "failed", "state", "reason"),
    [
        (None, 0, RunState.SUCCEEDED, None),
        (None, 2, RunState.FAILED, Reason.TASK_FAILED),
        (Reason.TASK_FAILED, 1, RunState.FAILED, Reason.TASK_FAILED),
        (Reason.CANCELLED, 0, RunState.CANCELLED, Reason.CANCELLED),
        (Reason.CANCELLED, 1, RunState.CANCELLED, Reason.CANCELLED),
        (Reason.TIMEOUT, 0, RunState.FAILED, Reason.TIMEOUT),
    ],
)
def test_how_a_run_ends_follows_from_its_stop_and_its_dead_letters(
    stop: Reason | None, failed: int, state: RunState, reason: Reason | None
) -> None:
    run = advance_run(a_run(open=0, stop=stop, failed=failed, due_at=NOON), AllEnded(), LATER)

    assert (run.state, run.reason) == (state, reason)
    assert (run.ended_at, run.due_at, run.told) == (LATER, None, None)


def test_a_run_with_an_open_task_does_not_end() -> None:
    with pytest.raises(AssertionError, match="ends after its last task"):
        advance_run(a_run(open=1), AllEnded(), LATER)


@pytest.mark.parametrize("state", sorted(set(RunState) - GOING))
def test_only_a_run_that_has_started_ends(state: RunState) -> None:
    with pytest.raises(IllegalTransition):
        advance_run(a_run(state=state, open=0), AllEnded(), LATER)


@pytest.mark.parametrize("state", sorted(REOPENABLE))
def test_a_reopened_run_is_a_new_generation_with_its_stop_forgotten(state: RunState) -> None:
    ended = a_run(state=state, stop=Reason.TIMEOUT, reason=Reason.TIMEOUT, generation=2)

    run = advance_run(ended, RunReopened(LATER), NOON)

    assert (run.state, run.generation, run.due_at) == (RunState.RUNNING, 3, LATER)
    assert (run.stop, run.reason, run.ended_at) == (None, None, None)


@pytest.mark.parametrize("state", sorted(set(RunState) - REOPENABLE - GOING))
def test_a_run_without_dead_letters_is_not_reopened(state: RunState) -> None:
    with pytest.raises(IllegalTransition):
        advance_run(a_run(state=state), RunReopened(None), LATER)


def test_a_paused_run_is_of_a_format_that_older_releases_leave_alone() -> None:
    run = advance_run(a_run(due_at=NOON), PauseAsked(), LATER)

    assert (run.state, run.format, run.swept, run.due_at) == (RunState.PAUSED, 2, 0, NOON)


def test_a_run_whose_tasks_are_not_written_goes_on_with_writing_after_a_pause() -> None:
    paused = advance_run(a_run(state=RunState.PENDING), PauseAsked(), LATER)

    resumed = advance_run(paused, ResumeAsked(), LATER)

    assert (paused.state, paused.swept) == (RunState.PAUSED, None)
    assert (resumed.state, resumed.swept, resumed.format) == (RunState.PENDING, None, 1)


def test_a_resumed_run_has_its_tasks_to_admit() -> None:
    run = advance_run(a_run(state=RunState.PAUSED), ResumeAsked(), LATER)

    assert (run.state, run.format, run.swept) == (RunState.RUNNING, 1, 0)


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (RunState.PAUSED, PauseAsked()),
        (RunState.PENDING, ResumeAsked()),
        (RunState.RUNNING, ResumeAsked()),
    ],
)
def test_pausing_or_resuming_twice_changes_nothing(state: RunState, event: RunEvent) -> None:
    run = a_run(state=state)

    assert advance_run(run, event, LATER) is run


@pytest.mark.parametrize("state", sorted(RUN_ENDED))
@pytest.mark.parametrize("event", [PauseAsked(), ResumeAsked()])
def test_what_has_ended_is_neither_paused_nor_resumed(state: RunState, event: RunEvent) -> None:
    with pytest.raises(IllegalTransition):
        advance_run(a_run(state=state), event, LATER)


def test_what_is_being_stopped_is_not_paused() -> None:
    with pytest.raises(IllegalTransition):
        advance_run(a_run(stop=Reason.CANCELLED), PauseAsked(), LATER)


@pytest.mark.parametrize(("started", "state"), [(None, RunState.PENDING), (NOON, RunState.RUNNING)])
def test_a_stop_ends_a_pause(started: int | None, state: RunState) -> None:
    paused = a_run(state=RunState.PAUSED, started_at=started, swept=5)

    run = advance_run(paused, StopAsked(Reason.CANCELLED), LATER)

    assert (run.state, run.stop, run.swept, run.format) == (state, Reason.CANCELLED, None, 1)


def test_a_paused_run_ends_with_its_last_task() -> None:
    run = advance_run(a_run(state=RunState.PAUSED, open=0, swept=3), AllEnded(), LATER)

    assert (run.state, run.swept, run.format) == (RunState.SUCCEEDED, None, 1)


def test_a_paused_run_that_is_reopened_stays_paused() -> None:
    run = advance_run(a_run(state=RunState.PAUSED), RunReopened(None), LATER)

    assert (run.state, run.generation, run.format) == (RunState.PAUSED, 2, 2)


@pytest.mark.parametrize("event", [AllEnded(), RunReopened(None)])
def test_a_run_paused_before_its_tasks_were_written_neither_ends_nor_reopens(
    event: RunEvent,
) -> None:
    run = advance_run(a_run(state=RunState.PENDING, open=0), PauseAsked(), LATER)

    with pytest.raises(IllegalTransition, match="not all written"):
        advance_run(run, event, LATER)


EVENTS = st.one_of(
    st.just(Unfolded()),
    st.builds(StopAsked, st.sampled_from([Reason.CANCELLED, Reason.TIMEOUT, Reason.TASK_FAILED])),
    st.just(PauseAsked()),
    st.just(ResumeAsked()),
    st.just(AllEnded()),
    st.builds(RunReopened, st.none() | st.just(LATER)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENTS, max_size=15), st.integers(0, 1))
def test_whatever_happens_a_run_ends_at_most_once_per_generation(
    events: list[RunEvent], failed: int
) -> None:
    run = a_run(state=RunState.PENDING, open=0, failed=failed)
    endings: list[int] = []

    for event in events:
        before = run
        try:
            run = advance_run(run, event, LATER)
        except IllegalTransition:
            continue
        assert (run.ended_at is not None) == (run.state in RUN_ENDED)
        assert (run.format == 2) == (run.state is RunState.PAUSED)
        assert run.swept is None or run.state in GOING
        assert run.stop is None or run.state is not RunState.PAUSED
        assert run.generation == before.generation + isinstance(event, RunReopened)
        if run.state in RUN_ENDED and before.state not in RUN_ENDED:
            endings.append(run.generation)
    assert endings == sorted(set(endings))
