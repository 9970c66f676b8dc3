"""How changes of runs and tasks become facts."""

from __future__ import annotations

from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import Moment
from tidemill.domain.plan import Node
from tidemill.domain.run import Run, RunState
from tidemill.domain.task_run import ENDED, TaskRun, TaskState

ERROR_CHARACTERS_MAX = 1_000

_READY = TaskState.READY  # found once: see ledger.py

_FACT_OF_STATE = {
    TaskState.PENDING: FactType.TASK_REOPENED,
    TaskState.READY: FactType.TASK_READY,
    TaskState.RUNNING: FactType.TASK_STARTED,
    TaskState.BACKOFF: FactType.TASK_RETRYING,
    TaskState.CANCELLING: FactType.TASK_CANCELLING,
    TaskState.SUCCEEDED: FactType.TASK_COMPLETED,
    TaskState.FAILED: FactType.TASK_FAILED,
    TaskState.SKIPPED: FactType.TASK_SKIPPED,
    TaskState.UPSTREAM_FAILED: FactType.TASK_UPSTREAM_FAILED,
    TaskState.CANCELLED: FactType.TASK_CANCELLED,
}
FACT_OF_RUN_STATE = {
    RunState.PENDING: FactType.WORKFLOW_ACCEPTED,
    RunState.SUCCEEDED: FactType.WORKFLOW_COMPLETED,
    RunState.FAILED: FactType.WORKFLOW_FAILED,
    RunState.CANCELLED: FactType.WORKFLOW_CANCELLED,
}


def run_fact(run: Run, kind: FactType, now: Moment) -> Fact:
    """A fact about the run itself."""
    return Fact(
        kind,
        run.namespace,
        run.id,
        run.workflow,
        now,
        run.state,
        run.generation,
        reason=run.reason or run.stop,
    )


def task_fact(run: Run, node: Node, before: TaskRun, after: TaskRun, now: Moment) -> Fact:
    """The fact that tells how a task changed its state."""
    state = after.state
    ready = state is _READY
    lost = ready and after.losses > before.losses
    # In the order of the fields: by their names it would take four times as long.
    return Fact(
        FactType.TASK_RETRYING if lost else _FACT_OF_STATE[state],
        after.namespace,
        after.run_id,
        run.workflow,
        now,
        state,
        run.generation,
        node.id,
        after.position,
        after.epoch,
        after.attempt,
        after.failures,
        after.losses,
        after.reason,
        _error_text(after),
        node.spec.executor if ready else None,  # executor
        after.started_at if state in ENDED else None,  # started_at
    )


def _error_text(task: TaskRun) -> str | None:
    if task.error is None:
        return None
    return f"{task.error.type}: {task.error.message}"[:ERROR_CHARACTERS_MAX]
