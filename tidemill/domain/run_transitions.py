"""The state machine of a run: every legal move."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidemill.domain.errors import IllegalTransition
from tidemill.domain.identifiers import Moment
from tidemill.domain.run import PAUSED_FORMAT, PLAIN_FORMAT, RUN_ENDED, Run, RunState
from tidemill.domain.task_run import Reason


class Unfolded(msgspec.Struct, frozen=True):
    """All tasks of the run are written."""


class StopAsked(msgspec.Struct, frozen=True):
    """The rest of the run is to be cancelled."""

    reason: Reason


class PauseAsked(msgspec.Struct, frozen=True):
    """Nothing of the run is to be granted until it is resumed."""


class ResumeAsked(msgspec.Struct, frozen=True):
    """The run is to go on where it was paused."""


class AllEnded(msgspec.Struct, frozen=True):
    """No task of the run is open any more."""


class RunReopened(msgspec.Struct, frozen=True):
    """Some of its tasks are to run again."""

    due_at: Moment | None


RunEvent: TypeAlias = Unfolded | StopAsked | PauseAsked | ResumeAsked | AllEnded | RunReopened


def advance_run(run: Run, event: RunEvent, now: Moment) -> Run:
    """Let `event` happen to `run`. The only place where the state of a run changes."""
    match run.state, event:
        case RunState.RUNNING, AllEnded():
            return _ended(run, now)
        case RunState.PENDING, Unfolded():
            return msgspec.structs.replace(run, state=RunState.RUNNING, told=0, started_at=now)
        case _, StopAsked() if run.state in RUN_ENDED or run.stop is not None:
            return run  # stopping twice, or too late, is not an error
        case _, StopAsked(reason):
            # What is held is cancelled like the rest: a pause is over when a stop begins.
            going = msgspec.structs.replace(_unpaused(run), swept=None)
            return msgspec.structs.replace(going, stop=reason, due_at=None)
        case ((RunState.PENDING | RunState.RUNNING), PauseAsked()) if run.stop is None:
            swept = None if run.state is RunState.PENDING else 0
            return msgspec.structs.replace(
                run, state=RunState.PAUSED, swept=swept, format=PAUSED_FORMAT
            )
        case RunState.PAUSED, ResumeAsked():
            return _unpaused(run)
        case (RunState.PAUSED, PauseAsked()) | (
            (RunState.PENDING | RunState.RUNNING),
            ResumeAsked(),
        ):
            return run  # repeating it is not an error
        case RunState.PAUSED, AllEnded() | RunReopened() if run.started_at is None:
            raise IllegalTransition(f"run {run.id}: its tasks are not all written yet")
        case RunState.PAUSED, AllEnded():
            return _ended(run, now)
        case (
            (RunState.RUNNING | RunState.PAUSED | RunState.FAILED | RunState.CANCELLED),
            RunReopened(due_at),
        ):
            return _reopened(run, due_at)
        case _:
            raise IllegalTransition(f"run {run.id}: no {type(event).__name__} from {run.state}")


def _unpaused(run: Run) -> Run:
    """A paused run as it goes on: its READY tasks are to be admitted again, if it has any."""
    if run.state is not RunState.PAUSED:
        return run
    if run.started_at is None:
        return msgspec.structs.replace(run, state=RunState.PENDING, format=PLAIN_FORMAT)
    return msgspec.structs.replace(run, state=RunState.RUNNING, swept=0, format=PLAIN_FORMAT)


def _reopened(run: Run, due_at: Moment | None) -> Run:
    return msgspec.structs.replace(
        run,
        state=RunState.PAUSED if run.state is RunState.PAUSED else RunState.RUNNING,
        generation=run.generation + 1,
        stop=None,
        reason=None,
        ended_at=None,
        due_at=due_at,
    )


def _ended(run: Run, now: Moment) -> Run:
    assert run.open == 0, "a run ends after its last task"
    state, why = _ending(run)
    return msgspec.structs.replace(
        run,
        state=state,
        reason=why,
        ended_at=now,
        due_at=None,
        told=None,
        swept=None,
        format=PLAIN_FORMAT,
    )


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
