"""A plan: a workflow with its edges resolved, ready for turns to follow."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from tidemill.domain.identifiers import VersionId
from tidemill.domain.references import (
    parents_of,
    referenced_tasks,
    results_read,
    secrets_read,
)
from tidemill.domain.routes import fold_route, need_of
from tidemill.domain.task_run import TaskKind
from tidemill.domain.workflow import OUTPUT_ID, TaskSpec, TriggerRule, Workflow

OUTPUT_PARAMETER = "expression"


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A task of the definition, with its place among the others."""

    index: int
    id: str
    kind: TaskKind
    spec: TaskSpec
    parents: tuple[int, ...]
    children: tuple[int, ...]
    references: tuple[int, ...]  # parents whose results it reads
    secrets: tuple[str, ...]  # that its inputs name
    route: str
    params: bytes  # JSON, encoded once for all its assignments
    inputs: bytes


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A definition that turns can follow."""

    version_id: VersionId
    workflow: Workflow
    nodes: tuple[Node, ...]
    roots: tuple[int, ...]

    @property
    def output(self) -> Node | None:
        """The node that evaluates the workflow's output, when it has one."""
        last = self.nodes[-1]
        return last if last.kind is TaskKind.OUTPUT else None


def encode_workflow(workflow: Workflow) -> bytes:
    """The canonical text of a definition: equal definitions give equal bytes."""
    return msgspec.json.encode(workflow, order="deterministic")


def version_of(namespace: str, spec: bytes) -> VersionId:
    """The name of a definition: a hash of its content."""
    return VersionId(hashlib.sha256(namespace.encode() + b"\0" + spec).hexdigest())


def decode_plan(version_id: VersionId, spec: bytes) -> Plan:
    """Read back a stored definition."""
    return compile_plan(version_id, msgspec.json.decode(spec, type=Workflow))


def compile_plan(version_id: VersionId, workflow: Workflow) -> Plan:
    """Resolve the edges of a valid workflow."""
    specs = list(workflow.tasks)
    index = {spec.id: place for place, spec in enumerate(specs)}
    parents = [tuple(index[name] for name in parents_of(spec)) for spec in specs]
    references = [tuple(sorted({index[name] for name in results_read(spec)})) for spec in specs]
    if workflow.output is not None:
        specs.append(_output_task(workflow.output))
        parents.append(_output_parents(workflow.output, index))
        references.append(parents[-1])
    children: list[list[int]] = [[] for _ in specs]
    for place, above in enumerate(parents):
        for parent in above:
            children[parent].append(place)
    nodes = tuple(
        Node(
            index=place,
            id=spec.id,
            kind=TaskKind.OUTPUT if spec.id == OUTPUT_ID else TaskKind.TASK,
            spec=spec,
            parents=parents[place],
            children=tuple(children[place]),
            references=references[place],
            secrets=secrets_read(spec),
            route=fold_route(spec.queue, spec.labels, need_of(spec.executor, spec.params)),
            params=msgspec.json.encode(spec.params),
            inputs=msgspec.json.encode(spec.inputs),
        )
        for place, spec in enumerate(specs)
    )
    roots = tuple(node.index for node in nodes if not node.parents)
    return Plan(version_id=version_id, workflow=workflow, nodes=nodes, roots=roots)


def _output_task(expression: str) -> TaskSpec:
    # A result that is missing because its task was skipped reads as null; after a failure the run
    # has failed anyway, and its output is not worth a worker's time.
    return TaskSpec(
        id=OUTPUT_ID,
        executor=OUTPUT_ID,
        params={OUTPUT_PARAMETER: expression},
        trigger=TriggerRule.NONE_FAILED,
    )


def _output_parents(expression: str, index: Mapping[str, int]) -> tuple[int, ...]:
    names = referenced_tasks(expression)
    return tuple(sorted(index.values() if names is None else (index[name] for name in names)))
