"""What trigger rules and retry policies mean, written down a second time from their definition."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.domain.workflow import RetryPolicy, Source, TaskSpec, TriggerRule, Workflow

SUCCESS, FAILURE, ABSENCE = "success", "failure", "absence"
_SENSE = {
    "SUCCEEDED": SUCCESS,
    "FAILED": FAILURE,
    "UPSTREAM_FAILED": FAILURE,
    "SKIPPED": ABSENCE,
    "CANCELLED": ABSENCE,
}


def parents(workflow: Workflow, position: int) -> list[int] | None:
    """Positions of a task's parents; None for the node that evaluates the output."""
    if position >= len(workflow.tasks):
        return None
    task = workflow.tasks[position]
    named = set(task.depends_on)
    named |= {s.result for s in task.inputs.values() if isinstance(s, Source) and s.result}
    return [place for place, other in enumerate(workflow.tasks) if other.id in named]


def verdict(task: TaskSpec, endings: Sequence[str]) -> str | None:
    """What becomes of a task; None while a parent has not ended."""
    if any(state not in _SENSE for state in endings):
        return None
    senses = [_SENSE[state] for state in endings]
    if _holds(task.trigger, senses):
        return "READY"
    waits_for_failure = task.trigger in {TriggerRule.ONE_FAILED, TriggerRule.ALL_FAILED}
    return "SKIPPED" if waits_for_failure or FAILURE not in senses else "UPSTREAM_FAILED"


def _holds(rule: TriggerRule, senses: list[str]) -> bool:
    held = {
        TriggerRule.ALL_SUCCEEDED: all(sense == SUCCESS for sense in senses),
        TriggerRule.NONE_FAILED: FAILURE not in senses,
        TriggerRule.ALL_DONE: True,
        TriggerRule.ONE_SUCCEEDED: SUCCESS in senses or not senses,
        TriggerRule.ONE_FAILED: FAILURE in senses,
        TriggerRule.ALL_FAILED: all(sense == FAILURE for sense in senses),
    }
    return held[rule]


def delay_range(policy: RetryPolicy, failures: int) -> tuple[float, float]:
    """The shortest and the longest backoff after so many failures."""
    nominal = min(policy.cap_seconds, policy.base_seconds * policy.factor ** (failures - 1))
    if policy.jitter == "full":
        return 0.0, nominal
    return nominal * (1 - policy.jitter), nominal * (1 + policy.jitter)
