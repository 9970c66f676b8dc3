"""Finding what a request names: runs, plans, tasks; what is of another namespace is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tidemill.api.services import Services
from tidemill.api.views import error_line, result_nodes, result_view
from tidemill.domain.errors import MalformedRun, NotFound
from tidemill.domain.identifiers import RunId, SessionId, TaskKey, VersionId
from tidemill.domain.plan import Node, Plan
from tidemill.domain.problems import show
from tidemill.domain.run import KEY_CHARACTERS_MAX, Run, RunKind, RunState
from tidemill.engine.plans import PlansMissing
from tidemill.ports.queries import DeadQuery
from tidemill.ports.rows import WorkflowRow

_RUN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_run_id(text: str) -> bool:
    """Whether the text has the form of a run's id; nothing else may be asked of a store."""
    return _RUN_ID.fullmatch(text) is not None


async def find_run(services: Services, namespace: str, name: str) -> Run:
    """The run with this id, or else the one that a client has given this id of its own."""
    reader = services.store.reader
    if is_run_id(name):
        try:
            return await reader.run(namespace, RunId(name))
        except NotFound:
            pass  # it may still be a client's own id
    if 0 < len(name) <= KEY_CHARACTERS_MAX and name.isprintable():
        found = await reader.find_by_key(namespace, RunKind.DAG, name)
        if found is not None:
            return await reader.run(namespace, found)
    raise NotFound(f"there is no run {show(name)}")


async def find_run_id(services: Services, namespace: str, name: str) -> RunId:
    """The id of `find_run`."""
    return (await find_run(services, namespace, name)).id


async def find_workflow(services: Services, namespace: str, name: str) -> WorkflowRow:
    """The workflow of this name, or else the one with this id."""
    reader = services.store.reader
    if not is_run_id(name):
        return await reader.workflow(namespace, name)
    try:
        return await reader.workflow(namespace, name)
    except NotFound:
        return await reader.workflow_by_id(namespace, name)


async def plans_of(services: Services, runs: Sequence[Run]) -> Mapping[VersionId, Plan]:
    """The plans of these runs; one that cannot be read is left out."""
    try:
        plans, _ = services.plans.of(runs)
    except PlansMissing as missing:
        await services.plans.load(services.store.payloads, missing.version_ids)
        plans, _ = services.plans.of(runs)
    return plans


async def plan_of(services: Services, run: Run) -> Plan:
    """The plan of a run, or MalformedRun."""
    plan = (await plans_of(services, [run])).get(run.version_id)
    if plan is None:
        raise MalformedRun(run.id, "its definition cannot be read")
    return plan


def find_node(plan: Plan, task: str) -> Node:
    """A task of a definition by its id, or by its title where a client gave it one."""
    for node in plan.nodes:
        if node.id == task:
            return node
    titled = [node for node in plan.nodes if node.spec.title == task]
    if len(titled) == 1:
        return titled[0]
    raise NotFound(f"workflow {plan.workflow.name} has no task {show(task)}")


async def workers_of(services: Services, namespace: str) -> Mapping[SessionId, str]:
    """Names of the workers that are connected, by session."""
    sessions = await services.store.reader.sessions(namespace)
    return {session.id: session.worker for session in sessions}


async def error_of(services: Services, run: Run) -> str | None:
    """Why a run failed, in a line; None when it did not, or time ran out."""
    if run.state is not RunState.FAILED:
        return None
    query = DeadQuery(namespace=run.namespace, run_id=run.id, limit=1)
    letters = await services.store.reader.dead_letters(query)
    if not letters:
        return run.reason
    plan = await plan_of(services, run)
    return error_line(letters[0], plan.nodes[letters[0].node])


async def result_of(services: Services, run: Run) -> object:
    """The result of a run; None until it has succeeded."""
    if run.state is not RunState.SUCCEEDED:
        return None
    plan = await plan_of(services, run)
    keys = [TaskKey(run.id, node.index) for node in result_nodes(plan)]
    found = await services.store.payloads.results(keys)
    results = {key.position: data for key, data in found.items()}
    return result_view(plan, results, bare=run.kind is RunKind.JOB)


__all__ = [
    "error_of",
    "find_node",
    "find_run",
    "find_run_id",
    "find_workflow",
    "is_run_id",
    "plan_of",
    "plans_of",
    "result_of",
    "workers_of",
]
