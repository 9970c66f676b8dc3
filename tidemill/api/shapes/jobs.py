"""/api/v1/jobs: single jobs, as a durable job queue speaks of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.api.looking import is_run_id, plans_of, workers_of
from tidemill.api.routing import Answer, Call, endpoint
from tidemill.api.shapes.statuses import (
    STATES_OF,
    STATUS_OF,
    JobStatus,
    attempts_begun,
    last_error,
)
from tidemill.api.views import time_view
from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId, SessionId
from tidemill.domain.permissions import Permission
from tidemill.domain.problems import show
from tidemill.domain.workflow import TaskSpec
from tidemill.engine.shapes import RETRIES_DEFAULT, JobWish, job_payload, job_request
from tidemill.engine.starting import Started
from tidemill.ports.queries import Job, JobQuery
from tidemill.protocol.cloud_events import time_of
from tidemill.protocol.resources.values import Key, Time

LISTED_DEFAULT = 100
LISTED_MAX = 1_000

Retries = Annotated[int, Meta(ge=0, le=1_000)]


class SubmitJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job; a key that is missing is made up."""

    type: Annotated[str, Meta(min_length=1, max_length=128)]
    payload: Any = None
    max_retries: Retries | None = None
    idempotency_key: Key | None = None


class SubmittedJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as it stands; what is not known is left out."""

    id: str
    idempotency_key: str
    type: str
    payload: Any
    status: JobStatus
    attempt: int
    max_retries: int
    created_at: Time
    last_error: str | UnsetType = UNSET
    worker_id: str | UnsetType = UNSET
    started_at: Time | UnsetType = UNSET
    completed_at: Time | UnsetType = UNSET


class SubmittedJobsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to list."""

    status: JobStatus | None = None
    limit: Annotated[int, Meta(ge=1, le=LISTED_MAX)] = LISTED_DEFAULT


@endpoint(
    "POST",
    "/api/v1/jobs",
    permission=Permission.RUNS_START,
    summary="Submit a job",
    tag="shapes",
    status=201,
    errors=("CONFLICT", "UNAVAILABLE"),
    example={"type": "compute", "payload": {"iterations": 10}, "max_retries": 2},
)
async def submit_job(call: Call, body: SubmitJob) -> Answer[SubmittedJob]:
    """The same key with the same body answers with the first job, with another body it is a 409."""
    services = call.services
    wish = JobWish(
        type=body.type,
        payload=body.payload,
        max_retries=RETRIES_DEFAULT if body.max_retries is None else body.max_retries,
        key=body.idempotency_key or services.entropy.run_id(),
    )
    request = job_request(wish, call.namespace, services.job_types)
    started = await services.submissions.submit(request)
    headers = {"Location": f"/api/v1/jobs/{started.run_id}"}
    if not started.created:
        return Answer(await _look(call, started.run_id), headers=headers)
    return Answer(_fresh(wish, started), headers=headers)


@endpoint(
    "GET",
    "/api/v1/jobs",
    permission=Permission.RUNS_READ,
    summary="List submitted jobs",
    tag="shapes",
)
async def list_submitted_jobs(call: Call, query: SubmittedJobsQuery) -> list[SubmittedJob]:
    """Newest first."""
    services = call.services
    wanted = JobQuery(
        namespace=call.namespace,
        states=() if query.status is None else STATES_OF[query.status],
        limit=query.limit,
    )
    return await _views(call, await services.store.reader.jobs(wanted))


@endpoint(
    "GET",
    "/api/v1/jobs/{job_id}",
    permission=Permission.RUNS_READ,
    summary="Show a submitted job",
    tag="shapes",
    errors=("NOT_FOUND",),
)
async def get_submitted_job(call: Call, job_id: str) -> SubmittedJob:
    """A job as it stands."""
    if not is_run_id(job_id):
        raise NotFound(f"there is no job {show(job_id)}")
    return await _look(call, RunId(job_id))


async def _look(call: Call, run_id: RunId) -> SubmittedJob:
    job = await call.services.store.reader.job(call.namespace, run_id)
    views = await _views(call, [job])
    if not views:
        raise NotFound(f"job {run_id} cannot be read: its definition is missing")
    return views[0]


async def _views(call: Call, jobs: list[Job]) -> list[SubmittedJob]:
    services = call.services
    plans = await plans_of(services, [job.run for job in jobs])
    workers = await workers_of(services, call.namespace)
    inputs = await services.store.payloads.inputs([job.run.id for job in jobs])
    return [
        _view(job, plans[job.run.version_id].nodes[0].spec, inputs.get(job.run.id, b"{}"), workers)
        for job in jobs
        if job.run.version_id in plans
    ]


def _fresh(wish: JobWish, started: Started) -> SubmittedJob:
    """A job that was committed a moment ago: nothing of it needs to be read."""
    return SubmittedJob(
        id=started.run_id,
        idempotency_key=wish.key or started.run_id,
        type=wish.type,
        payload=wish.payload,
        status=JobStatus.QUEUED,
        attempt=0,
        max_retries=wish.max_retries,
        created_at=time_of(started.at),
    )


def _view(job: Job, spec: TaskSpec, value: bytes, workers: Mapping[SessionId, str]) -> SubmittedJob:
    task = job.task
    worker = workers.get(task.session_id) if task.session_id is not None else None
    return SubmittedJob(
        id=job.run.id,
        idempotency_key=job.run.key or job.run.id,
        type=spec.executor,
        payload=job_payload(value),
        status=STATUS_OF[task.state],
        attempt=attempts_begun(task),
        max_retries=spec.retry.max_retries,
        created_at=time_of(job.run.created_at),
        last_error=last_error(task) or UNSET,
        worker_id=worker or UNSET,
        started_at=time_view(task.started_at) or UNSET,
        completed_at=time_view(task.ended_at) or UNSET,
    )


ENDPOINTS = (submit_job, list_submitted_jobs, get_submitted_job)
