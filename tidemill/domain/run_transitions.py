"""The state machine of a run: every legal move."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidemill.domain.errors import IllegalTransition
from tidemill.domain.identifiers import Moment
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.task_run import Reason


class Unfolded(msgspec.Struct, frozen=True):
    """All tasks of the run are written."""


class StopAsked(msgspec.Struct, frozen=True):
    """The rest of the run is to be cancelled."""

    reason: Reason


class AllEnded(msgspec.Struct, frozen=True):
    """No task of the run is open any more."""


class RunReopened(msgspec.Struct, frozen=True):
    """Some of its tasks are to run again."""

    due_at: Moment | None


RunEvent: TypeAlias = Unfolded | StopAsked | AllEnded | RunReopened


def advance_run(run: Run, event: RunEvent, now: Moment) -> Run:
    """Let `event` happen to `run`. The only place where the state of a run changes."""
    match run.state, event:
        case RunState.PENDING, Unfolded():
            return msgspec.structs.replace(run, state=RunState.RUNNING, told=0, started_at=now)
        case _, StopAsked() if run.state in RUN_ENDED or run.stop is not None:
            return run  # stopping twice, or too late, is not an error
        case _, StopAsked(reason):
            return msgspec.structs.replace(run, stop=reason, due_at=None)
        case RunState.RUNNING, AllEnded():
            assert run.open == 0, "a run ends after its last task"
            state, why = _ending(run)
            return msgspec.structs.replace(
                run, state=state, reason=why, ended_at=now, due_at=None, told=None
            )
        case ((RunState.RUNNING | RunState.FAILED | RunState.CANCELLED), RunReopened(due_at)):
            return msgspec.structs.replace(
                run,
                state=RunState.RUNNING,
                generation=run.generation + 1,
                stop=None,
                reason=None,
                ended_at=None,
                due_at=due_at,
            )
        case _:
            raise IllegalTransition(f"run {run.id}: no {type(event).__name__} from {run.state}")


def _ending(run: Run) -> tuple[RunState, Reason | None]:
    match run.stop:
        case Reason.CANCELLED:
            return RunState.CANCELLED, Reason.CANCELLED
        case Reason.TIMEOUT:
            return RunState.FAILED, Reason.TIMEOUT
        case _ if run.failed:
            return RunState.FAILED, Reason.TASK_FAILED
        case _:
            return RunState.SUCCEEDED, None
