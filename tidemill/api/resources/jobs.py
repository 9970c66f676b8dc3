"""/v1/jobs: single tasks of a known type, each a run of its own."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from tidemill.api.cursors import RunCursor, decode_cursor, paged
from tidemill.api.looking import is_run_id, plan_of, plans_of, workers_of
from tidemill.api.routing import Answer, Call, endpoint
from tidemill.api.starting import KEY_HEADER, job_request, started
from tidemill.api.views import job_view
from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId
from tidemill.domain.permissions import Permission
from tidemill.domain.problems import show
from tidemill.domain.task_run import TaskState
from tidemill.ports.queries import JobQuery
from tidemill.protocol.resources import JobsQuery, JobView, Page, StartedView, StartJob


class _Input(msgspec.Struct, frozen=True):
    """The part of a job's input that is its payload."""

    payload: msgspec.Raw = msgspec.Raw(b"null")


@endpoint(
    "POST",
    "/v1/jobs",
    permission=Permission.RUNS_START,
    summary="Start a job",
    tag="jobs",
    status=201,
    headers=KEY_HEADER,
    statuses={200: "The key had started this job before."},
    errors=("CONFLICT", "UNAVAILABLE"),
    example={"type": "compute", "payload": {"iterations": 10}, "max_retries": 2},
)
async def start_job(call: Call, body: StartJob) -> Answer[StartedView]:
    """One task of a known type. Its id is that of its run, under which /v1/runs knows it too."""
    return await started(call, job_request(call, body), "jobs")


@endpoint(
    "GET",
    "/v1/jobs",
    permission=Permission.RUNS_READ,
    summary="List jobs",
    tag="jobs",
)
async def list_jobs(call: Call, query: JobsQuery) -> Page[JobView]:
    """Newest first, without payloads and results."""
    cursor = decode_cursor(query.after, RunCursor)
    services = call.services
    wanted = JobQuery(
        namespace=call.namespace,
        states=query.state,
        type=query.type,
        after=cursor.id if cursor else None,
        limit=query.limit + 1,
    )
    jobs = await services.store.reader.jobs(wanted)
    plans = await plans_of(services, [job.run for job in jobs])
    workers = await workers_of(services, call.namespace)
    return paged(
        [job for job in jobs if job.run.version_id in plans],
        query.limit,
        lambda job: job_view(job, plans[job.run.version_id], workers),
        lambda job: RunCursor(job.run.id),
    )


@endpoint(
    "GET",
    "/v1/jobs/{job_id}",
    permission=Permission.RUNS_READ,
    summary="Show a job",
    tag="jobs",
    errors=("NOT_FOUND",),
)
async def get_job(call: Call, job_id: str) -> Answer[JobView]:
    """A job with its payload, and its result once it has succeeded."""
    if not is_run_id(job_id):
        raise NotFound(f"there is no job {show(job_id)}")
    services = call.services
    job = await services.store.reader.job(call.namespace, RunId(job_id))
    plan = await plan_of(services, job.run)
    workers = await workers_of(services, call.namespace)
    payloads = services.store.payloads
    inputs = await payloads.inputs([job.run.id])
    results = await payloads.results([job.task.key])
    done = job.task.state is TaskState.SUCCEEDED
    view = msgspec.structs.replace(
        job_view(job, plan, workers),
        payload=msgspec.json.decode(inputs.get(job.run.id, b"{}"), type=_Input).payload,
        result=msgspec.Raw(results.get(job.task.key, b"null")) if done else UNSET,
    )
    # Whatever else changes in a job, its attempts and its state tell it.
    etag = f'"{job.task.state}-{job.task.epoch}-{job.task.attempt}-{job.run.generation}"'
    return Answer(view, headers={"ETag": etag})


ENDPOINTS = (start_job, list_jobs, get_job)
