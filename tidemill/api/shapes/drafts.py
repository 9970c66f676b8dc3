"""/api/workflows, /api/tasks, /api/dependencies: a workflow put together step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidemill.api.looking import is_run_id
from tidemill.api.routing import Answer, Call, endpoint
from tidemill.api.shapes.chains import Title
from tidemill.api.shapes.defaults import default_executor
from tidemill.api.shapes.jobs import Retries
from tidemill.api.shapes.statuses import last_error
from tidemill.api.views import time_view
from tidemill.domain.errors import NotFound
from tidemill.domain.permissions import Permission
from tidemill.domain.problems import show
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.engine import drafts
from tidemill.engine.drafts import DRAFT_TASKS_MAX, Draft, DraftTask, TaskPlan
from tidemill.engine.shapes import RETRIES_DEFAULT
from tidemill.ports.rows import WorkflowRow
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources.values import Time

DRAFT = "DRAFT"
Id = Annotated[str, Meta(min_length=1, max_length=128)]


class CreateWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow without tasks; several may have one name."""

    name: Title


class AddTask(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """A task; without a type, the namespace's default runs it."""

    workflow_id: Id
    name: Title
    type: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    payload: Any = None
    max_retries: Retries | None = None


class AddDependency(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """One task waits for another one."""

    workflow_id: Id
    task_id: Id
    depends_on_task_id: Id


class StepwiseTaskView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A task, with its state in the latest run."""

    id: str
    workflow_id: str
    name: str
    type: str
    payload: Any
    max_retries: int
    depends_on: tuple[str, ...]
    status: TaskState = TaskState.PENDING
    attempt: int = 0
    error: str | None = None
    started_at: Time | None = None
    completed_at: Time | None = None


class StepwiseView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workflow, `DRAFT` until it is started, then in the state of its latest run."""

    id: str
    name: str
    status: str
    run_id: str | None
    created_at: Time
    tasks: tuple[StepwiseTaskView, ...]


class DependencyView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An edge that was added."""

    workflow_id: str
    task_id: str
    depends_on_task_id: str


class StepwiseStarted(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A run that was started."""

    run_id: str
    workflow_id: str
    status: str


@endpoint(
    "POST",
    "/api/workflows",
    permission=Permission.WORKFLOWS_WRITE,
    summary="Begin a workflow step by step",
    tag="shapes",
    status=201,
    audit="workflow.create",
    example={"name": "nightly report"},
)
async def create_stepwise(call: Call, body: CreateWorkflow) -> Answer[StepwiseView]:
    """Tasks and dependencies are added next, then it is started."""
    services = call.services
    row = await drafts.create(services.store, services.entropy, call.namespace, body.name)
    return Answer(_view(row, Draft(), None, {}), headers={"Location": f"/api/workflows/{row.id}"})


@endpoint(
    "POST",
    "/api/tasks",
    permission=Permission.WORKFLOWS_WRITE,
    summary="Add a task to a workflow",
    tag="shapes",
    status=201,
    audit="workflow.add_task",
    errors=("NOT_FOUND",),
)
async def add_task(call: Call, body: AddTask) -> StepwiseTaskView:
    """It takes part in runs that are started from now on."""
    services = call.services
    _known(body.workflow_id)
    executor = await default_executor(call)
    plan = TaskPlan(
        name=body.name,
        type=body.type or executor,
        payload=body.payload,
        max_retries=RETRIES_DEFAULT if body.max_retries is None else body.max_retries,
    )
    types = services.job_types if body.type is not None else (*services.job_types, executor)
    task = await drafts.add_task(
        services.store, services.entropy, call.namespace, body.workflow_id, plan, types
    )
    return _task_view(body.workflow_id, task, None)


@endpoint(
    "POST",
    "/api/dependencies",
    permission=Permission.WORKFLOWS_WRITE,
    summary="Let a task wait for another one",
    tag="shapes",
    status=201,
    audit="workflow.add_dependency",
    errors=("NOT_FOUND",),
)
async def add_dependency(call: Call, body: AddDependency) -> DependencyView:
    """The edge that would close a circle is refused with the code CYCLE."""
    _known(body.workflow_id)
    await drafts.add_dependency(
        call.services.store,
        call.namespace,
        body.workflow_id,
        body.task_id,
        body.depends_on_task_id,
    )
    return DependencyView(
        workflow_id=body.workflow_id,
        task_id=body.task_id,
        depends_on_task_id=body.depends_on_task_id,
    )


@endpoint(
    "POST",
    "/api/workflows/{workflow_id}/start",
    permission=Permission.RUNS_START,
    summary="Start a workflow that was put together",
    tag="shapes",
    status=202,
    audit="run.start",
    errors=("NOT_FOUND", "UNAVAILABLE"),
)
async def start_stepwise(call: Call, workflow_id: str) -> StepwiseStarted:
    """Makes a version of it, and a run."""
    services = call.services
    _known(workflow_id)
    started = await drafts.start(
        services.store,
        services.bus,
        services.entropy,
        call.namespace,
        workflow_id,
        call.principal.name,
    )
    return StepwiseStarted(run_id=started.run_id, workflow_id=workflow_id, status="RUNNING")


@endpoint(
    "GET",
    "/api/workflows/{workflow_id}",
    permission=Permission.WORKFLOWS_READ,
    summary="Show a workflow that was put together",
    tag="shapes",
    errors=("NOT_FOUND",),
)
async def get_stepwise(call: Call, workflow_id: str) -> StepwiseView:
    """Its tasks, with their states in the latest run."""
    reader = call.services.store.reader
    _known(workflow_id)
    row, draft = await drafts.read(call.services.store, call.namespace, workflow_id)
    if row.run_id is None:
        return _view(row, draft, None, {})
    run = await reader.run(call.namespace, row.run_id)
    tasks = await reader.tasks(call.namespace, row.run_id, -1, DRAFT_TASKS_MAX)
    return _view(row, draft, run, {task.node: task for task in tasks})


def _known(workflow_id: str) -> None:
    if not is_run_id(workflow_id):
        raise NotFound(f"there is no workflow {show(workflow_id)}")


def _view(
    row: WorkflowRow, draft: Draft, run: Run | None, tasks: Mapping[int, TaskRun]
) -> StepwiseView:
    return StepwiseView(
        id=row.id,
        name=row.title or row.name,
        status=DRAFT if run is None else run.state,
        run_id=row.run_id,
        created_at=time_of(row.created_at),
        tasks=tuple(
            _task_view(row.id, task, tasks.get(place)) for place, task in enumerate(draft.tasks)
        ),
    )


def _task_view(workflow_id: str, task: DraftTask, row: TaskRun | None) -> StepwiseTaskView:
    view = StepwiseTaskView(
        id=task.id,
        workflow_id=workflow_id,
        name=task.name,
        type=task.type,
        payload=task.payload,
        max_retries=task.max_retries,
        depends_on=task.depends_on,
    )
    if row is None:
        return view
    return msgspec.structs.replace(
        view,
        status=row.state,
        attempt=row.attempt if row.epoch else 0,
        error=last_error(row),
        started_at=time_view(row.started_at),
        completed_at=time_view(row.ended_at),
    )


ENDPOINTS = (
    create_stepwise,
    add_task,
    add_dependency,
    start_stepwise,
    get_stepwise,
)
