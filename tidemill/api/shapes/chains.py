"""/api/v1/workflows: a list of steps, submitted and started in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.api.looking import is_run_id, plan_of
from tidemill.api.routing import Answer, Call, endpoint
from tidemill.api.shapes.jobs import Retries
from tidemill.api.shapes.statuses import (
    STATUS_OF,
    ChainStatus,
    JobStatus,
    attempts_begun,
    chain_status,
    last_error,
)
from tidemill.api.starting import KEY_HEADER, key_of
from tidemill.api.views import time_view
from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId
from tidemill.domain.permissions import Permission
from tidemill.domain.problems import show
from tidemill.domain.run import Run, RunKind
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.domain.workflow import TITLE_CHARACTERS_MAX
from tidemill.engine.shapes import RETRIES_DEFAULT, StepWish, read_steps, steps_request
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources.values import Time

STEPS_MAX = 1_000

Title = Annotated[str, Meta(min_length=1, max_length=TITLE_CHARACTERS_MAX)]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step of a chain."""

    name: Title
    type: Annotated[str, Meta(min_length=1, max_length=128)]
    payload: Any = None
    max_retries: Retries | None = None


class SubmitChain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps that follow one another."""

    name: Title
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=STEPS_MAX)]


class StepView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step as it stands; what is not known is left out."""

    name: str
    type: str
    payload: Any
    status: JobStatus
    attempt: int
    max_retries: int
    last_error: str | UnsetType = UNSET
    started_at: Time | UnsetType = UNSET
    completed_at: Time | UnsetType = UNSET


class ChainView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chain as it stands; `current_step` counts the steps that have succeeded."""

    id: str
    name: str
    status: ChainStatus
    current_step: int
    total_steps: int
    created_at: Time
    completed_at: Time | UnsetType = UNSET
    steps: tuple[StepView, ...] | UnsetType = UNSET


@endpoint(
    "POST",
    "/api/v1/workflows",
    permission=Permission.RUNS_START,
    summary="Submit a chain of steps",
    tag="shapes",
    status=201,
    headers=KEY_HEADER,
    errors=("CONFLICT", "UNAVAILABLE"),
    example={
        "name": "data pipeline",
        "steps": [
            {"name": "extract", "type": "default"},
            {"name": "transform", "type": "transform", "payload": {"rows": 3}},
            {"name": "load", "type": "notify", "max_retries": 2},
        ],
    },
)
async def submit_chain(call: Call, body: SubmitChain) -> Answer[ChainView]:
    """It starts at once; each step begins when the one before it has succeeded."""
    services = call.services
    steps = [
        StepWish(
            name=step.name,
            type=step.type,
            payload=step.payload,
            max_retries=RETRIES_DEFAULT if step.max_retries is None else step.max_retries,
        )
        for step in body.steps
    ]
    key = key_of(call, UNSET)
    request = steps_request(body.name, steps, call.namespace, services.job_types, key)
    started = await services.submissions.submit(request)
    headers = {"Location": f"/api/v1/workflows/{started.run_id}"}
    if not started.created:
        run = await services.store.reader.run(call.namespace, started.run_id)
        return Answer(await _look(call, run, with_steps=False), headers=headers)
    view = ChainView(
        id=started.run_id,
        name=body.name,
        status=ChainStatus.PENDING,
        current_step=0,
        total_steps=len(steps),
        created_at=time_of(started.at),
    )
    return Answer(view, headers=headers)


@endpoint(
    "GET",
    "/api/v1/workflows/{chain_id}",
    permission=Permission.RUNS_READ,
    summary="Show a chain of steps",
    tag="shapes",
    errors=("NOT_FOUND",),
)
async def get_chain(call: Call, chain_id: str) -> ChainView:
    """A chain with its steps."""
    missing = NotFound(f"there is no workflow {show(chain_id)}")
    if not is_run_id(chain_id):
        raise missing
    run = await call.services.store.reader.run(call.namespace, RunId(chain_id))
    if run.kind is not RunKind.STEPS:
        raise missing
    return await _look(call, run, with_steps=True)


async def _look(call: Call, run: Run, *, with_steps: bool) -> ChainView:
    services = call.services
    plan = await plan_of(services, run)
    tasks = await services.store.reader.tasks(call.namespace, run.id, -1, STEPS_MAX)
    steps: tuple[StepView, ...] | UnsetType = UNSET
    if with_steps:
        inputs = await services.store.payloads.inputs([run.id])
        asked = read_steps(plan.workflow, inputs.get(run.id, b"{}"))
        steps = _step_views(asked, tasks)
    return ChainView(
        id=run.id,
        name=plan.workflow.title or plan.workflow.name,
        status=chain_status(run, tasks),
        current_step=sum(task.state is TaskState.SUCCEEDED for task in tasks),
        total_steps=len(plan.workflow.tasks),
        created_at=time_of(run.created_at),
        completed_at=time_view(run.ended_at) or UNSET,
        steps=steps,
    )


def _step_views(asked: Sequence[StepWish], tasks: Sequence[TaskRun]) -> tuple[StepView, ...]:
    """Steps in their order; all tasks of so small a run are written together with it."""
    return tuple(
        StepView(
            name=step.name,
            type=step.type,
            payload=step.payload,
            status=STATUS_OF[task.state],
            attempt=attempts_begun(task),
            max_retries=step.max_retries,
            last_error=last_error(task) or UNSET,
            started_at=time_view(task.started_at) or UNSET,
            completed_at=time_view(task.ended_at) or UNSET,
        )
        for step, task in zip(asked, tasks, strict=True)
    )


ENDPOINTS = (submit_chain, get_chain)
