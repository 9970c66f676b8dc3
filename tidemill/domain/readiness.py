"""Readiness: what the endings of a task's parents mean for it.

A task counts its parents: how many have not ended, how many failed, how many were skipped. Only
the children of a task that ends are looked at, so the cost of an ending is the number of its
edges. Once no parent is left, the counters and the trigger rule decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import TriggerRule

_COUNT_AS_FAILED = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})
_COUNT_AS_SKIPPED = frozenset({TaskState.SKIPPED, TaskState.CANCELLED})


class Tally(NamedTuple):
    """How a task's parents stand."""

    waiting: int = 0
    failed: int = 0
    skipped: int = 0


def tally_of(endings: Iterable[TaskState | None]) -> Tally:
    """Count parents by their ending; None stands for one that has not ended."""
    waiting = failed = skipped = 0
    for state in endings:
        if state is None:
            waiting += 1
        elif state in _COUNT_AS_FAILED:
            failed += 1
        elif state in _COUNT_AS_SKIPPED:
            skipped += 1
    return Tally(waiting, failed, skipped)


def fate(rule: TriggerRule, parents: int, failed: int, skipped: int) -> TaskState:
    """READY, SKIPPED or UPSTREAM_FAILED: what becomes of a task whose parents have all ended."""
    succeeded = parents - failed - skipped
    assert succeeded >= 0, "more endings than parents"
    match rule:
        case TriggerRule.ALL_SUCCEEDED if succeeded == parents:  # nearly all
            return TaskState.READY
        case TriggerRule.ALL_DONE:
            return TaskState.READY
        case TriggerRule.ONE_FAILED:
            return TaskState.READY if failed else TaskState.SKIPPED
        case TriggerRule.ALL_FAILED:
            return TaskState.READY if failed == parents else TaskState.SKIPPED
        case TriggerRule.ONE_SUCCEEDED if succeeded or not parents:
            return TaskState.READY
        case TriggerRule.NONE_FAILED if not failed:
            return TaskState.READY
        case _:
            return TaskState.UPSTREAM_FAILED if failed else TaskState.SKIPPED
