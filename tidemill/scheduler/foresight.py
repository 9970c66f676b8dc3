"""Foresight: which rows the next turn will want besides those it has news of.

The end of a task concerns its children. Whoever granted the task knew them, so the turn that hears
of its end can lock them with the first statement, and need not go back for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from tidemill.domain.identifiers import TaskKey
from tidemill.scheduler.admission import Grant

CHILDREN_MAX = 16
"""A task with more children goes back for them: there are few such tasks."""

TASKS_MAX = 50_000


class Foresight:
    """Children of the tasks granted last. Being wrong costs a statement, or a row read in vain."""

    def __init__(self) -> None:
        self._children: OrderedDict[TaskKey, Sequence[int]] = OrderedDict()

    def children_of(self, key: TaskKey) -> Sequence[int]:
        """The positions of those of a task, as far as they are known."""
        return self._children.get(key, ())

    def note(self, grants: Iterable[Grant]) -> None:
        """Remember the children of what was granted."""
        for grant in grants:
            children = grant.plan.nodes[grant.task.node].children
            if 0 < len(children) <= CHILDREN_MAX:
                self._children[grant.task.key] = children
        while len(self._children) > TASKS_MAX:
            self._children.popitem(last=False)

    def forget(self, keys: Iterable[TaskKey]) -> None:
        """They have ended, and will not be heard of again."""
        for key in keys if self._children else ():
            self._children.pop(key, None)
