"""/v1/runs/{run_id}/tasks: the tasks of a run, their attempts, output and results."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from tidemill.api.cursors import TaskCursor, decode_cursor, paged
from tidemill.api.looking import find_node, find_run, plan_of, workers_of
from tidemill.api.routing import Call, endpoint
from tidemill.api.task_details import input_of, with_progress
from tidemill.api.views import attempt_views, is_shown, task_view
from tidemill.api.waits import with_waits
from tidemill.domain.identifiers import TaskKey
from tidemill.domain.permissions import Permission
from tidemill.domain.task_run import TaskState
from tidemill.protocol.resources import Page, TaskDetails, TasksQuery, TaskView


@endpoint(
    "GET",
    "/v1/runs/{run_id}/tasks",
    permission=Permission.RUNS_READ,
    summary="List the tasks of a run",
    tag="tasks",
    errors=("NOT_FOUND",),
)
async def list_tasks(call: Call, run_id: str, query: TasksQuery) -> Page[TaskView]:
    """In the order of the definition; each says what it waits for."""
    cursor = decode_cursor(query.after, TaskCursor)
    services = call.services
    run = await find_run(services, call.namespace, run_id)
    plan = await plan_of(services, run)
    after = cursor.position if cursor else -1
    tasks = await services.store.reader.tasks(run.namespace, run.id, after, query.limit + 1)
    workers = await workers_of(services, run.namespace)
    page = paged(
        tasks,
        query.limit,
        lambda task: task_view(task, plan, workers),
        lambda task: TaskCursor(task.position),
    )
    shown = {task.position for task in tasks if is_shown(task, plan)}
    items = with_progress(services, run, await with_waits(services, run, tasks, page.items))
    return Page(items=tuple(one for one in items if one.position in shown), next=page.next)


@endpoint(
    "GET",
    "/v1/runs/{run_id}/tasks/{task}",
    permission=Permission.RUNS_READ,
    summary="Show a task of a run",
    tag="tasks",
    errors=("NOT_FOUND",),
)
async def get_task(call: Call, run_id: str, task: str) -> TaskDetails:
    """By its id: the task, every attempt with what it printed, and its result once it has one."""
    services = call.services
    run = await find_run(services, call.namespace, run_id)
    plan = await plan_of(services, run)
    node = find_node(plan, task)
    key = TaskKey(run.id, node.index)
    reader = services.store.reader
    row = await reader.task(run.namespace, key)
    workers = await workers_of(services, run.namespace)
    views = await with_waits(services, run, [row], [task_view(row, plan, workers)])
    results = await services.store.payloads.results([key])
    done = row.state is TaskState.SUCCEEDED
    return TaskDetails(
        task=with_progress(services, run, views)[0],
        params=node.spec.params,
        input=await input_of(services, run, plan, node),
        attempts=attempt_views(
            await reader.attempts(run.namespace, key),
            row,
            await reader.logs(run.namespace, key),
            workers,
        ),
        result=msgspec.Raw(results.get(key, b"null")) if done else UNSET,
    )


ENDPOINTS = (list_tasks, get_task)
