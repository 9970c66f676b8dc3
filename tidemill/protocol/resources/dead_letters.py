"""Dead letters on the wire: tasks that failed for good, one by one and in groups."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from tidemill.domain.workflow import Name
from tidemill.protocol.resources.values import PAGE_DEFAULT, Cursor, ErrorView, Limit, Time

REPLAY_RATE_MAX = 1_000.0
REPLAY_MAX = 10_000


Group: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=128, description="The `group` of dead letters alike.")
]


class DeadLettersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to list, newest run first."""

    workflow: Name | None = None
    group: Group | None = None
    run: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class GroupsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many groups to list, the largest first."""

    limit: Limit = PAGE_DEFAULT


class ReplayMany(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to try again, and how many a second at most.

    Without `workflow` and `group` every one is meant, and `all` must say so.
    """

    workflow: Name | None = None
    group: Group | None = None
    all: bool = False
    rate: Annotated[float, Meta(ge=1, le=REPLAY_RATE_MAX)] = 50.0
    limit: Annotated[int, Meta(ge=1, le=REPLAY_MAX)] = 1_000


class DeadLetterView(msgspec.Struct, frozen=True, kw_only=True):
    """A task that failed for good and waits to be replayed or discarded."""

    run_id: str
    task: str
    position: int
    workflow: str
    executor: str
    attempt: int
    failures: int
    losses: int
    title: str = ""
    reason: str | None = None
    error: ErrorView | None = None
    ended_at: Time | None = None


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one workflow that failed alike; `message` and `run_id` are of the newest."""

    group: str
    workflow: str
    type: str
    message: str
    count: int
    run_id: str
    task: str
    earliest_at: Time
    latest_at: Time


class ReplayedView(msgspec.Struct, frozen=True, kw_only=True):
    """How many dead letters are tried again, how many could not be, and whether more fit."""

    replayed: int
    failed: int = 0
    more: bool = False


__all__ = [
    "REPLAY_MAX",
    "REPLAY_RATE_MAX",
    "DeadLetterView",
    "DeadLettersQuery",
    "GroupView",
    "GroupsQuery",
    "ReplayMany",
    "ReplayedView",
]
