"""Replay and retry: what must run again when dead letters are tried again."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from tidemill.domain.errors import Conflict
from tidemill.domain.events import ParentsEnded, Reopened, Replayed
from tidemill.domain.identifiers import SECOND
from tidemill.domain.ledger import Ledger
from tidemill.domain.plan import Node, Plan
from tidemill.domain.readiness import Tally, tally_of
from tidemill.domain.run import RUN_ENDED
from tidemill.domain.task_run import ENDED, TaskRun, TaskState
from tidemill.domain.transitions import REOPENABLE


def replay(ledger: Ledger, position: int) -> None:
    """Reopen the run at one FAILED task. The ledger holds every row of the run.

    The task becomes READY with fresh budgets; what could not run because of it waits again, with
    its parents counted anew. If the run had been stopped, all that was cancelled waits again too.
    """
    task = ledger.task(position)
    if task is None or task.state is not TaskState.FAILED:
        state = "does not exist" if task is None else f"is {task.state}"
        raise Conflict(f"only a FAILED task can be replayed; this one {state}", code="NOT_FAILED")
    _refuse_while_stopping(ledger)
    _reopen(ledger, [position])


def retry_failed(ledger: Ledger) -> None:
    """Reopen the run at all its FAILED tasks at once, as if each were replayed.

    A run that was stopped goes on with what was cancelled, also when nothing in it had failed.
    """
    run = ledger.run
    if run.failed == 0 and run.stop is None:
        raise Conflict(f"the run is {run.state} and no task of it failed", code="NOTHING_FAILED")
    _refuse_while_stopping(ledger)
    nodes = ledger.plan.nodes
    _reopen(ledger, [node.index for node in nodes if _is(ledger, node, TaskState.FAILED)])


def _refuse_while_stopping(ledger: Ledger) -> None:
    if ledger.run.stop is not None and ledger.run.state not in RUN_ENDED:
        raise Conflict("the run is being stopped; try again when it has ended", code="STOPPING")


def _reopen(ledger: Ledger, dead: Sequence[int]) -> None:
    was_stopped = ledger.run.stop is not None
    again = _below(ledger, dead) | (_cancelled(ledger) if was_stopped else set())
    limit = ledger.plan.workflow.timeout_seconds
    ledger.reopen(None if limit is None else ledger.now + round(limit * SECOND))
    for position in dead:
        ledger.happen(position, Replayed())
    _wait_again(ledger, again)


def _below(ledger: Ledger, dead: Sequence[int]) -> set[int]:
    found: set[int] = set()
    queue = deque(dead)
    while queue:
        for child in ledger.plan.nodes[queue.popleft()].children:
            if child not in found and _state(ledger, child) in REOPENABLE:
                found.add(child)
                queue.append(child)
    return found


def _cancelled(ledger: Ledger) -> set[int]:
    nodes = ledger.plan.nodes
    return {node.index for node in nodes if _is(ledger, node, TaskState.CANCELLED)}


def _wait_again(ledger: Ledger, again: set[int]) -> None:
    tallies = {place: _tally(ledger, place, again) for place in sorted(again)}
    for place, tally in tallies.items():
        ledger.happen(
            place, Reopened(waiting=tally.waiting, failed=tally.failed, skipped=tally.skipped)
        )
    for place, tally in tallies.items():
        if tally.waiting == 0:
            ledger.happen(place, ParentsEnded(()))


def _tally(ledger: Ledger, place: int, again: set[int]) -> Tally:
    plan = ledger.plan
    parents = (ledger.task(parent) for parent in plan.nodes[place].parents)
    return tally_of(
        parent.state if parent and _has_told(plan, parent, place, again) else None
        for parent in parents
    )


def _has_told(plan: Plan, parent: TaskRun, child: int, again: set[int]) -> bool:
    if parent.state not in ENDED or parent.position in again:
        return False
    if parent.told is None:
        return True
    return bisect_left(plan.nodes[parent.node].children, child) < parent.told


def _is(ledger: Ledger, node: Node, state: TaskState) -> bool:
    return _state(ledger, node.index) is state


def _state(ledger: Ledger, place: int) -> TaskState:
    task = ledger.task(place)
    assert task is not None, "a replay sees every row of the run"
    return task.state
