"""Shorthand for moves of a task in tests: an event happens at LATER, by an even chance."""

from __future__ import annotations

from typing import Any

from tests.builders import NOON, a_task
from tests.domain.invariants import assert_sound
from tests.domain.legal_moves import ERROR
from tests.domain.plans import a_node
from tidemill.domain.events import Event, Failed
from tidemill.domain.identifiers import SECOND
from tidemill.domain.plan import Node
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.domain.transitions import Transition, advance

LATER = NOON + 7 * SECOND
PLAIN = a_node()


def tried(task: TaskRun, event: Event, node: Node = PLAIN) -> Transition | None:
    """What follows, if anything."""
    return advance(task, event, node, LATER, 0.5)


def moved(task: TaskRun, event: Event, node: Node = PLAIN) -> Transition:
    """What follows, for an event that is not stale."""
    move = tried(task, event, node)
    assert move is not None
    assert_sound(move.task, node)
    return move


def after(task: TaskRun, event: Event, node: Node = PLAIN) -> TaskRun:
    """The task after the event."""
    return moved(task, event, node).task


def failed(**fields: Any) -> Failed:
    """A report of an error under the first epoch."""
    plain: dict[str, Any] = {"epoch": 1, "error": ERROR}
    return Failed(**(plain | fields))


def running(**fields: Any) -> TaskRun:
    """A RUNNING task."""
    return a_task(state=TaskState.RUNNING, **fields)


def cancelling(**fields: Any) -> TaskRun:
    """A CANCELLING task."""
    return a_task(state=TaskState.CANCELLING, **fields)
