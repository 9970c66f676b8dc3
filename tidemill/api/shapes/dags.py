"""/workflows: a DAG under the client's own id, submitted and started in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.api.looking import plan_of
from tidemill.api.routing import Answer, Call, endpoint
from tidemill.api.shapes.chains import Title
from tidemill.api.shapes.defaults import default_executor
from tidemill.api.shapes.jobs import Retries
from tidemill.api.shapes.statuses import last_error
from tidemill.api.views import time_view
from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId
from tidemill.domain.permissions import Permission
from tidemill.domain.problems import show
from tidemill.domain.run import RunKind, RunState
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.domain.workflow import TASKS_MAX
from tidemill.engine.shapes import RETRIES_DEFAULT, TaskWish, dag_request, read_tasks
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources.values import Key, Time

PAGE = 10_000


class DagTask(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """A task under an id of the client's; without a type, the namespace's default runs it."""

    task_id: Title
    type: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    dependencies: tuple[Title, ...] = ()
    payload: Any = None
    compensation_payload: Any | UnsetType = UNSET
    max_retries: Retries | None = None


class SubmitDag(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """Tasks and what each waits for, under an id that is used once."""

    workflow_id: Key
    tasks: Annotated[tuple[DagTask, ...], Meta(min_length=1, max_length=TASKS_MAX)]


class DagStarted(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A DAG that was accepted."""

    workflow_id: str
    status: RunState
    run_id: str


class DagTaskView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A task as it stands."""

    task_id: str
    type: str
    dependencies: tuple[str, ...]
    payload: Any
    status: TaskState
    retry_count: int
    next_retry_at: Time | None
    max_retries: int
    error: str | None
    started_at: Time | None
    completed_at: Time | None
    compensation_payload: Any | UnsetType = UNSET


class DagView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A DAG as it stands."""

    workflow_id: str
    run_id: str
    status: RunState
    created_at: Time
    completed_at: Time | None
    tasks: tuple[DagTaskView, ...]


@endpoint(
    "POST",
    "/workflows",
    permission=Permission.RUNS_START,
    summary="Submit a DAG under an id of your own",
    tag="shapes",
    status=201,
    errors=("CONFLICT", "UNAVAILABLE"),
    example={
        "workflowId": "order-1042",
        "tasks": [
            {"taskId": "reserve", "payload": {"sku": "a"}, "compensationPayload": {"sku": "a"}},
            {"taskId": "charge", "dependencies": ["reserve"], "payload": {"amount": 5}},
        ],
    },
)
async def submit_dag(call: Call, body: SubmitDag) -> Answer[DagStarted]:
    """It starts at once. The same id again is a 409, whatever comes with it."""
    services = call.services
    executor = await default_executor(call)
    tasks = [_wish(task) for task in body.tasks]
    request = dag_request(body.workflow_id, tasks, call.namespace, services.job_types, executor)
    started = await services.submissions.submit(request)
    view = DagStarted(workflow_id=body.workflow_id, status=RunState.RUNNING, run_id=started.run_id)
    return Answer(view, headers={"Location": f"/v1/runs/{started.run_id}"})


@endpoint(
    "GET",
    "/workflows/{workflow_id}",
    permission=Permission.RUNS_READ,
    summary="Show a DAG by its own id",
    tag="shapes",
    errors=("NOT_FOUND",),
)
async def get_dag(call: Call, workflow_id: str) -> DagView:
    """A DAG with its tasks."""
    services = call.services
    reader = services.store.reader
    run_id = await reader.find_by_key(call.namespace, RunKind.DAG, workflow_id)
    if run_id is None:
        raise NotFound(f"there is no workflow {show(workflow_id)}")
    run = await reader.run(call.namespace, run_id)
    plan = await plan_of(services, run)
    inputs = await services.store.payloads.inputs([run_id])
    asked = read_tasks(plan.workflow, inputs.get(run_id, b"{}"))
    rows = {task.node: task for task in await _all_tasks(call, run_id)}
    return DagView(
        workflow_id=workflow_id,
        run_id=run_id,
        status=run.state,
        created_at=time_of(run.created_at),
        completed_at=time_view(run.ended_at),
        tasks=tuple(_view(wish, rows.get(place)) for place, wish in enumerate(asked)),
    )


async def _all_tasks(call: Call, run_id: RunId) -> Sequence[TaskRun]:
    reader = call.services.store.reader
    tasks: list[TaskRun] = []
    while page := await reader.tasks(
        call.namespace, run_id, tasks[-1].position if tasks else -1, PAGE
    ):
        tasks += page
    return tasks


def _wish(task: DagTask) -> TaskWish:
    return TaskWish(
        id=task.task_id,
        type=task.type,
        dependencies=task.dependencies,
        payload=task.payload,
        compensation=task.compensation_payload,
        max_retries=RETRIES_DEFAULT if task.max_retries is None else task.max_retries,
    )


def _view(wish: TaskWish, task: TaskRun | None) -> DagTaskView:
    """A task of a large run may not be written yet: it waits."""
    waits = task is not None and task.state is TaskState.BACKOFF
    return DagTaskView(
        task_id=wish.id,
        type=wish.type or "",
        dependencies=wish.dependencies,
        payload=wish.payload,
        status=TaskState.PENDING if task is None else task.state,
        retry_count=0 if task is None else min(task.failures, wish.max_retries),
        next_retry_at=time_view(task.due_at) if task is not None and waits else None,
        max_retries=wish.max_retries,
        error=None if task is None else last_error(task),
        started_at=None if task is None else time_view(task.started_at),
        completed_at=None if task is None else time_view(task.ended_at),
        compensation_payload=wish.compensation,
    )


ENDPOINTS = (submit_dag, get_dag)
