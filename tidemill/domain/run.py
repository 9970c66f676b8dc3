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
    PAUSED = "PAUSED"  # what runs may end, and nothing is granted
    SUCCEEDED = "SUCCEEDED"  # every task ended, none failed
    FAILED = "FAILED"  # every task ended, at least one failed or time ran out
    CANCELLED = "CANCELLED"  # somebody stopped it


class RunKind(StrEnum):
    """How a run was asked for: what it is to whoever asked."""

    RUN = "run"  # a workflow
    JOB = "job"  # one task of a known type
    STEPS = "steps"  # a chain of steps
    DAG = "dag"  # tasks and their dependencies, under the client's own id


RUN_ENDED = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})

KEY_CHARACTERS_MAX = 256

PLAIN_FORMAT = 1
PAUSED_FORMAT = 2
"""Of a run while it is paused: a release that knows nothing of pauses leaves it alone."""


class Run(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A row of the run table, without its input."""

    id: RunId
    namespace: str
    workflow: str
    version_id: VersionId
    state: RunState
    open: int  # tasks that have not ended
    next_position: int  # positions below are written
    created_at: Moment
    failed: int = 0  # tasks that are FAILED
    ended: int = 0  # endings so far: gives each ended task its `ended_no`
    told: int | None = None  # roots made READY so far, in order; None when none is left
    stop: Reason | None = None  # why the rest of the run is being cancelled
    generation: int = 1  # raised each time the run is reopened
    quarantine: str | None = None  # why no scheduler touches the run
    labels: dict[str, str] = {}
    parent_run: RunId | None = None
    parent_position: int | None = None
    due_at: Moment | None = None  # when the run's time is over
    started_at: Moment | None = None
    ended_at: Moment | None = None
    reason: Reason | None = None
    format: int = PLAIN_FORMAT
    swept: int | None = None  # paused or resumed: READY tasks below are held, or admitted again
    kind: RunKind = RunKind.RUN
    key: str | None = None  # the idempotency key or the client's own id, for people to see
