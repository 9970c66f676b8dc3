"""What running a Python workflow in this process can raise."""

from __future__ import annotations

from tidemill.domain.errors import TidemillError
from tidemill.domain.task_run import TaskError


class WorkflowFailed(TidemillError):
    """A run that was to give a result did not succeed; `task` and `error` say why."""

    code = "RUN_FAILED"

    def __init__(
        self, workflow: str, state: str, task: str | None, error: TaskError | None
    ) -> None:
        why = f": task {task}: {error.type}: {error.message}" if error is not None else ""
        trace = f"\n{error.traceback.rstrip()}" if error is not None and error.traceback else ""
        super().__init__(f"workflow {workflow} {state.lower()}{why}{trace}")
        self.workflow = workflow
        self.state = state
        self.task = task
        self.error = error


__all__ = ["WorkflowFailed"]
