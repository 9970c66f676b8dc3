"""What people ask a store for, page by page."""

from __future__ import annotations

import msgspec

from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import RunState


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list: newest first, those older than `before` (a run id) when given."""

    namespace: str = "default"
    states: tuple[RunState, ...] = ()
    workflow: str | None = None
    before: RunId | None = None
    limit: int = 50


class DeadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters to list: newest run first, in order of position within a run."""

    namespace: str = "default"
    run_id: RunId | None = None
    before: TaskKey | None = None
    limit: int = 50
