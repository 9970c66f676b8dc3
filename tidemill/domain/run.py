"""One run of a workflow: its value and its states."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidemill.domain.identifiers import Moment, RunId, VersionId
from tidemill.domain.task_run import Reason


class RunState(StrEnum):
    """Where a run stands; docs/state_machine.md draws the moves between them."""

    PENDING = "PENDING"  # accepted; its tasks are being written, in chunks
    RUNNING = "RUNNING"  # its tasks may run
    SUCCEEDED = "SUCCEEDED"  # every task ended, none failed
    FAILED = "FAILED"  # every task ended, at least one failed or time ran out
    CANCELLED = "CANCELLED"  # somebody stopped it


RUN_ENDED = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the run table, without its input."""

    id: RunId
    namespace: str
    workflow: str
    version_id: VersionId
    state: RunState
    open: int  # tasks that have not ended
    failed: int = 0  # tasks that are FAILED
    ended: int = 0  # endings so far: gives each ended task its `ended_no`
    next_position: int  # positions below are written
    told: int | None = None  # roots made READY so far, in order; None when none is left
    stop: Reason | None = None  # why the rest of the run is being cancelled
    generation: int = 1  # raised each time the run is reopened
    quarantine: str | None = None  # why no scheduler touches the run
    labels: dict[str, str] = {}
    parent_run: RunId | None = None
    parent_position: int | None = None
    created_at: Moment
    due_at: Moment | None = None  # when the run's time is over
    started_at: Moment | None = None
    ended_at: Moment | None = None
    reason: Reason | None = None
    format: int = 1
