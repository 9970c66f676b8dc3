"""Foresight: which rows the next turn will want besides those it has news of.

The end of a task concerns its children. Whoever granted the task knew them, so the turn that hears
of its end can lock them with the first statement, and need not go back for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.plan import Plan
from tidemill.scheduler.admission import Grant

CHILDREN_MAX = 16
"""A task with more children goes back for them: there are few such tasks."""

RUNS_MAX = 10_000


class Foresight:
    """Plans of the runs granted from last. Being wrong costs a statement, or a row read in vain."""

    def __init__(self) -> None:
        self._plans: OrderedDict[RunId, Plan] = OrderedDict()

    def children_of(self, key: TaskKey) -> Sequence[TaskKey]:
        """Those of a task, as far as they are known."""
        run_id, position = key
        plan = self._plans.get(run_id)
        if plan is None or position >= len(plan.nodes):
            return ()
        children = plan.nodes[position].children
        if len(children) > CHILDREN_MAX:
            return ()
        return [TaskKey(run_id, child) for child in children]

    def note(self, grants: Iterable[Grant]) -> None:
        """Remember the plans of those among them that will have children to tell."""
        for grant in grants:
            if grant.plan.nodes[grant.task.node].children:
                self._plans[grant.task.run_id] = grant.plan
        while len(self._plans) > RUNS_MAX:
            self._plans.popitem(last=False)
