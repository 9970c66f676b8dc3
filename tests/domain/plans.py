"""Small plans for tests of the decision core."""

from __future__ import annotations

from typing import Any

from tidemill.domain.identifiers import VersionId
from tidemill.domain.plan import Node, Plan, compile_plan
from tidemill.domain.workflow import TaskSpec, Workflow


def a_spec(name: str = "a", *parents: str, **fields: Any) -> TaskSpec:
    """A task that waits for `parents`."""
    return TaskSpec(id=name, executor="noop", depends_on=parents, **fields)


def a_plan(*specs: TaskSpec, **fields: Any) -> Plan:
    """The plan of these tasks, in this order."""
    workflow = Workflow(name="orders", tasks=specs or (a_spec(),), **fields)
    return compile_plan(VersionId("v1"), workflow)


def a_node(parents: int = 0, children: int = 0, **fields: Any) -> Node:
    """A node with so many parents and children; the fields are those of its task."""
    above = [f"p{number}" for number in range(parents)]
    below = [f"c{number}" for number in range(children)]
    specs = [a_spec(name) for name in above]
    specs.append(a_spec("a", *above, **fields))
    specs += [a_spec(name, "a") for name in below]
    return a_plan(*specs).nodes[parents]
