"""What people ask about runs and tasks, answered from the store alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidemill.domain.errors import InvalidInput, MalformedRun, NotFound, Problem
from tidemill.domain.identifiers import RunId, TaskKey, VersionId
from tidemill.domain.plan import Plan, decode_plan
from tidemill.domain.references import resolve_inputs
from tidemill.domain.run import Run
from tidemill.domain.task_run import ENDED, Attempt, TaskRun
from tidemill.ports.queries import DeadQuery, RunQuery
from tidemill.ports.store import Store
from tidemill.protocol.messages import ProgressReport

PAGE_TASKS = 2_000
LATEST = "latest"
DEAD_LETTERS_MAX = 10_000
RUNS_SEARCHED_MAX = 10_000
PAGE_RUNS = 500
_CANDIDATES_MAX = 6


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept about one task."""

    run: Run
    task: TaskRun
    name: str
    executor: str
    params: dict[str, Any]
    input: Any  # as the attempt got it, or would get it now
    result: msgspec.Raw | None
    attempts: list[Attempt]  # before the latest
    logs: Mapping[int, str]  # by epoch


class RunPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A run, all its tasks by position, and what workers say about the running ones."""

    run: Run
    plan: Plan
    tasks: dict[int, TaskRun]
    progress: Mapping[int, ProgressReport]
    output: bytes | None
    owned: bool  # whether some process works on the store


async def find_run(store: Store, text: str) -> Run:
    """The run whose id is, begins with or ends with the text, or the latest one."""
    if text == LATEST:
        newest = await store.reader.runs(RunQuery(limit=1))
        if not newest:
            raise NotFound("the store holds no runs yet")
        return newest[0]
    found = await store.reader.find_runs(text.lower(), _CANDIDATES_MAX) if text else []
    if not found:
        raise NotFound(f"no run's id begins or ends with {text!r}; `tidemill runs` lists them")
    if len(found) > 1:
        some = ", ".join(found[: _CANDIDATES_MAX - 1])
        message = f"{text!r} fits more than one run ({some}…): give more characters"
        raise InvalidInput([Problem(path="run", message=message, code="ambiguous")])
    return await store.reader.run(found[0])


async def list_runs(store: Store, query: RunQuery, labels: Mapping[str, str]) -> list[Run]:
    """Runs that have all these labels, newest first, among the newest ten thousand."""
    if not labels:
        return await store.reader.runs(query)
    found: list[Run] = []
    page = msgspec.structs.replace(query, limit=PAGE_RUNS)
    for _ in range(RUNS_SEARCHED_MAX // PAGE_RUNS):
        runs = await store.reader.runs(page)
        found += [run for run in runs if labels.items() <= run.labels.items()]
        if len(found) >= query.limit or len(runs) < PAGE_RUNS:
            break
        page = msgspec.structs.replace(page, before=runs[-1].id)
    return found[: query.limit]


async def read_plan(store: Store, run: Run) -> Plan:
    """The definition that a run follows."""
    versions = await store.payloads.versions([run.version_id])
    if not versions:
        raise MalformedRun(run.id, "its definition is missing")
    return decode_plan(run.version_id, versions[0].spec)


async def read_tasks(store: Store, run: Run) -> list[TaskRun]:
    """All tasks of a run that are written so far."""
    tasks: list[TaskRun] = []
    while page := await store.reader.tasks(run.id, tasks[-1].position if tasks else -1, PAGE_TASKS):
        tasks += page
    return tasks


async def read_picture(
    store: Store, run: Run, progress: Sequence[ProgressReport], *, owned: bool
) -> RunPicture:
    """All that a look at one run shows."""
    plan = await read_plan(store, run)
    return RunPicture(
        run=run,
        plan=plan,
        tasks={task.position: task for task in await read_tasks(store, run)},
        progress={report.token.position: report for report in progress},
        output=await read_output(store, run, plan),
        owned=owned,
    )


def named(picture: RunPicture) -> list[dict[str, object]]:
    """The tasks of a run with their ids, for programs."""
    nodes = picture.plan.nodes
    return [{"id": nodes[task.node].id, "task": task} for task in picture.tasks.values()]


def find_task(plan: Plan, text: str) -> int:
    """The position of a task, by its id in the definition."""
    for node in plan.nodes:
        if node.id == text:
            return node.index
    raise NotFound(f"workflow {plan.workflow.name} has no task {text!r}")


async def read_task(store: Store, run: Run, plan: Plan, position: int) -> TaskReport:
    """Everything about one task."""
    key = TaskKey(run.id, position)
    tasks = await store.reader.tasks(run.id, position - 1, 1)
    if not tasks or tasks[0].position != position:
        raise NotFound(f"task {plan.nodes[position].id} of run {run.id} is not written yet")
    node = plan.nodes[position]
    results = await store.payloads.results([key])
    return TaskReport(
        run=run,
        task=tasks[0],
        name=node.id,
        executor=node.spec.executor,
        params=node.spec.params,
        input=await _read_input(store, run, plan, position),
        result=msgspec.Raw(results[key]) if key in results else None,
        attempts=await store.reader.attempts(key),
        logs=await store.reader.logs(key),
    )


async def failed_tasks(store: Store, run: Run, limit: int) -> list[TaskRun]:
    """The first FAILED tasks of a run."""
    return await store.reader.dead_letters(DeadQuery(run_id=run.id, limit=limit))


async def dead_letters(store: Store, run_id: RunId | None, limit: int) -> list[TaskRun]:
    """FAILED tasks, the newest failure first, among those of the newest runs."""
    found = await store.reader.dead_letters(DeadQuery(run_id=run_id, limit=DEAD_LETTERS_MAX))
    return sorted(found, key=lambda task: task.ended_at or 0, reverse=True)[:limit]


async def task_names(store: Store, tasks: Sequence[TaskRun]) -> list[str]:
    """The ids of tasks of several runs, each definition read once."""
    plans: dict[VersionId, Plan] = {}
    names: list[str] = []
    for task in tasks:
        run = await store.reader.run(task.run_id)
        if run.version_id not in plans:
            plans[run.version_id] = await read_plan(store, run)
        names.append(plans[run.version_id].nodes[task.node].id)
    return names


async def read_output(store: Store, run: Run, plan: Plan) -> bytes | None:
    """The result of a run whose workflow has an output; null is a result too."""
    if plan.output is None:
        return None
    key = TaskKey(run.id, plan.output.index)
    return (await store.payloads.results([key])).get(key, b"null")


def parents_awaited(task: TaskRun, plan: Plan, tasks: Mapping[int, TaskRun]) -> list[str]:
    """The parents of a task that have not ended."""
    return [
        plan.nodes[parent].id
        for parent in plan.nodes[task.node].parents
        if parent not in tasks or tasks[parent].state not in ENDED
    ]


async def _read_input(store: Store, run: Run, plan: Plan, position: int) -> Any:
    node = plan.nodes[position]
    inputs = await store.payloads.inputs([run.id])
    keys = [TaskKey(run.id, parent) for parent in node.references]
    results = await store.payloads.results(keys)
    by_name = {
        plan.nodes[key.position].id: msgspec.json.decode(data) for key, data in results.items()
    }
    try:
        return resolve_inputs(
            node.spec.inputs, msgspec.json.decode(inputs.get(run.id, b"null")), by_name
        )
    except InvalidInput as error:
        return {"problems": [str(problem) for problem in error.problems]}
