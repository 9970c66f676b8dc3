"""How a run must end, worked out a second time, from the meaning of the trigger rules alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidemill.domain.plan import Plan
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import TriggerRule

FAILURES = {TaskState.FAILED, TaskState.UPSTREAM_FAILED}
WAITS_FOR_FAILURE = {TriggerRule.ONE_FAILED, TriggerRule.ALL_FAILED}


def verdict(rule: TriggerRule, endings: Sequence[TaskState]) -> TaskState:
    """What becomes of a task whose parents ended like this."""
    good = [state is TaskState.SUCCEEDED for state in endings]
    bad = [state in FAILURES for state in endings]
    holds = {
        TriggerRule.ALL_SUCCEEDED: all(good),
        TriggerRule.NONE_FAILED: not any(bad),
        TriggerRule.ALL_DONE: True,
        TriggerRule.ONE_SUCCEEDED: any(good) or not endings,
        TriggerRule.ONE_FAILED: any(bad),
        TriggerRule.ALL_FAILED: all(bad),
    }
    if holds[rule]:
        return TaskState.READY
    # A task that waits for a failure is not a victim of one.
    victim = any(bad) and rule not in WAITS_FOR_FAILURE
    return TaskState.UPSTREAM_FAILED if victim else TaskState.SKIPPED


def expected_endings(
    plan: Plan,
    ending_of: Callable[[int], TaskState],
    decided: Mapping[int, TaskState] | None = None,
) -> dict[int, TaskState]:
    """How every task ends, given how each would end if it ran, and what is decided already."""
    endings: dict[int, TaskState] = dict(decided or {})
    left = [node for node in plan.nodes if node.index not in endings]
    while left:
        node = next(one for one in left if all(parent in endings for parent in one.parents))
        left.remove(node)
        fate = verdict(node.spec.trigger, [endings[parent] for parent in node.parents])
        endings[node.index] = ending_of(node.index) if fate is TaskState.READY else fate
    return endings
