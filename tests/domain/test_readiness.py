"""Readiness: counters and trigger rules."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import NOON, a_task
from tests.domain.plans import a_node
from tests.domain.run_oracle import verdict
from tidemill.domain.events import ParentsEnded
from tidemill.domain.readiness import Tally, fate, tally_of
from tidemill.domain.task_run import ENDED, TaskState
from tidemill.domain.transitions import advance
from tidemill.domain.workflow import TriggerRule

OK, BAD, SKIP = TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED
RUN, VICTIM = TaskState.READY, TaskState.UPSTREAM_FAILED

# For each rule: all parents succeeded; one failed, one succeeded; all failed; one skipped, one
# succeeded; all skipped; one failed, one skipped; no parents at all.
CASES = [(OK, OK), (BAD, OK), (BAD, BAD), (SKIP, OK), (SKIP, SKIP), (BAD, SKIP), ()]
FATES = {
    TriggerRule.ALL_SUCCEEDED: [RUN, VICTIM, VICTIM, SKIP, SKIP, VICTIM, RUN],
    TriggerRule.NONE_FAILED: [RUN, VICTIM, VICTIM, RUN, RUN, VICTIM, RUN],
    TriggerRule.ALL_DONE: [RUN, RUN, RUN, RUN, RUN, RUN, RUN],
    TriggerRule.ONE_SUCCEEDED: [RUN, RUN, VICTIM, RUN, SKIP, VICTIM, RUN],
    TriggerRule.ONE_FAILED: [SKIP, RUN, RUN, SKIP, SKIP, RUN, SKIP],
    TriggerRule.ALL_FAILED: [SKIP, SKIP, RUN, SKIP, SKIP, SKIP, RUN],
}


def decided(rule: TriggerRule, endings: tuple[TaskState, ...]) -> TaskState:
    tally = tally_of(endings)
    return fate(rule, len(endings), tally.failed, tally.skipped)


@pytest.mark.parametrize("rule", TriggerRule)
def test_each_rule_decides_as_its_name_says(rule: TriggerRule) -> None:
    assert [decided(rule, endings) for endings in CASES] == FATES[rule]


@pytest.mark.parametrize("rule", TriggerRule)
def test_counters_decide_like_the_meaning_of_the_rule(rule: TriggerRule) -> None:
    for count in range(5):
        for endings in combinations_with_replacement(sorted(ENDED), count):
            assert decided(rule, endings) is verdict(rule, endings), endings


def test_parents_are_counted_by_their_ending() -> None:
    endings = [None, OK, BAD, VICTIM, SKIP, TaskState.CANCELLED]

    assert tally_of(endings) == Tally(waiting=1, failed=2, skipped=2)


def test_more_endings_than_parents_are_a_fault_of_the_engine() -> None:
    with pytest.raises(AssertionError, match="more endings than parents"):
        fate(TriggerRule.ALL_DONE, parents=1, failed=1, skipped=1)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(TriggerRule),
    st.lists(st.sampled_from(sorted(ENDED)), min_size=1, max_size=8),
    st.lists(st.integers(0, 8), max_size=4),
)
def test_parents_counted_in_any_portions_decide_like_all_at_once(
    rule: TriggerRule, endings: list[TaskState], cuts: list[int]
) -> None:
    node = a_node(parents=len(endings), trigger=rule)
    task = a_task(state=TaskState.PENDING, waiting=len(endings))
    places = sorted({0, len(endings), *(cut for cut in cuts if cut < len(endings))})

    at_once = advance(task, ParentsEnded(tuple(endings)), node, NOON, 0.5)
    for start, end in pairwise(places):
        assert task.state is TaskState.PENDING
        move = advance(task, ParentsEnded(tuple(endings[start:end])), node, NOON, 0.5)
        assert move is not None
        task = move.task

    assert at_once is not None
    assert task == at_once.task
    assert task.state is verdict(rule, endings)
