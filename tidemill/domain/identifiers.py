"""Names of things: ids, moments, tokens."""

from __future__ import annotations

from typing import NamedTuple, NewType, TypeAlias

RunId = NewType("RunId", str)  # UUIDv7, as text
SessionId = NewType("SessionId", str)
VersionId = NewType("VersionId", str)  # content hash of a workflow definition

Moment: TypeAlias = int
"""Microseconds since 1970 in UTC, by the clock of the database wherever leases are concerned."""

SECOND: Moment = 1_000_000

new_tuple = tuple.__new__
"""Makes a named tuple from a plain one in half the time that its own constructor takes: keys and
tokens are made many times for each task."""


class TaskKey(NamedTuple):
    """A task of a run: the primary key of its row."""

    run_id: RunId
    position: int


class Token(NamedTuple):
    """The fencing token of one grant: whatever a worker reports about a task carries it."""

    run_id: RunId
    position: int
    epoch: int

    @property
    def key(self) -> TaskKey:
        """The task that the grant is for."""
        return new_tuple(TaskKey, self[:2])


class Lane(NamedTuple):
    """Where READY tasks wait: rows of one lane differ only in the order of their arrival."""

    namespace: str
    route: str  # queue and labels folded together, see domain/routes.py
    priority: int
