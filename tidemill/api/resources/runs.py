"""/v1/runs: starting runs, finding them, waiting for them, steering them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from tidemill.api.cursors import RunCursor, decode_cursor, paged
from tidemill.api.looking import error_of, find_run, result_of
from tidemill.api.routing import Answer, Call, endpoint
from tidemill.api.showing import shown_run
from tidemill.api.starting import KEY_HEADER, run_request, started
from tidemill.api.views import run_view
from tidemill.api.waits import waits_of
from tidemill.domain.identifiers import RunId
from tidemill.domain.permissions import Permission
from tidemill.domain.run import RUN_ENDED, Run
from tidemill.engine.controls import cancel, pause, resume, retry_failed
from tidemill.ports import queries
from tidemill.ports.bus import Bus
from tidemill.ports.store import Store
from tidemill.protocol.cloud_events import moment_of
from tidemill.protocol.resources import (
    Page,
    ResultView,
    RetriedView,
    RunQuery,
    RunsQuery,
    RunView,
    StartedView,
    StartRun,
    WaitQuery,
)

Act: TypeAlias = Callable[[Store, Bus, str, RunId], Awaitable[Run]]
"""A use case that changes one run of a namespace."""


@endpoint(
    "POST",
    "/v1/runs",
    permission=Permission.RUNS_START,
    summary="Start a run",
    tag="runs",
    status=201,
    errors=("NOT_FOUND", "CONFLICT", "UNAVAILABLE"),
    headers=KEY_HEADER,
    statuses={200: "The key had started this run before."},
    example={"workflow": "hello", "input": {"name": "Ada"}, "key": "order-17"},
)
async def start_run(call: Call, body: StartRun) -> Answer[StartedView]:
    """Start a deployed workflow by its name, or a definition that is sent along.

    The second needs the permission `workflows:write` as well. The answer comes when the run is
    stored. The same key with another body is a conflict.
    """
    return await started(call, await run_request(call, body))


@endpoint(
    "GET",
    "/v1/runs",
    permission=Permission.RUNS_READ,
    summary="List runs",
    tag="runs",
    returns=Page[RunView],
)
async def list_runs(call: Call, query: RunsQuery) -> Page[RunView]:
    """Runs of every kind, newest first unless said otherwise; all conditions hold together."""
    cursor = decode_cursor(query.after, RunCursor)
    name, _, value = (query.label or "").partition("=")
    wanted = queries.RunQuery(
        namespace=call.namespace,
        states=query.state,
        workflow=query.workflow,
        kinds=query.kind,
        label=(name, value) if query.label else None,
        created_after=moment_of(query.created_after) if query.created_after else None,
        created_before=moment_of(query.created_before) if query.created_before else None,
        text=query.text,
        order=query.sort,
        after=cursor.id if cursor else None,
        limit=query.limit + 1,
    )
    store = call.services.store
    runs = await store.reader.runs(wanted)
    with_output = await call.services.outputs.among(store.payloads, runs)
    return paged(
        runs,
        query.limit,
        lambda run: run_view(run, has_output=run.version_id in with_output),
        lambda run: RunCursor(run.id),
    )


@endpoint(
    "GET",
    "/v1/runs/{run_id}",
    permission=Permission.RUNS_READ,
    summary="Show a run",
    tag="runs",
    errors=("NOT_FOUND",),
)
async def get_run(call: Call, run_id: str, query: RunQuery) -> Answer[RunView]:
    """One run by its id; a run that a client gave an id of its own is found by that too."""
    run = await find_run(call.services, call.namespace, run_id)
    view = await shown_run(call.services, run)
    if "input" in query.include:
        inputs = await call.services.store.payloads.inputs([run.id])
        view = msgspec.structs.replace(view, input=msgspec.Raw(inputs.get(run.id, b"{}")))
    if "result" in query.include:
        view = msgspec.structs.replace(view, result=await result_of(call.services, run))
    if "waits" in query.include:
        view = msgspec.structs.replace(view, waits=await waits_of(call.services, run))
    return Answer(view, headers=_etag(run, with_waits=view.waits is not UNSET))


@endpoint(
    "GET",
    "/v1/runs/{run_id}/wait",
    permission=Permission.RUNS_READ,
    summary="Wait for the end of a run",
    tag="runs",
    errors=("NOT_FOUND", "UNAVAILABLE"),
)
async def wait_for_run(call: Call, run_id: str, query: WaitQuery) -> RunView:
    """Answers as soon as the run has ended, or after `timeout` with `ended: false`."""
    run = await find_run(call.services, call.namespace, run_id)
    if run.state not in RUN_ENDED:
        endings = call.services.endings
        run = await endings.wait(call.namespace, run.id, query.timeout)
    return await shown_run(call.services, run)


@endpoint(
    "GET",
    "/v1/runs/{run_id}/result",
    permission=Permission.RUNS_READ,
    summary="Read the result of a run",
    tag="runs",
    errors=("NOT_FOUND",),
)
async def get_result(call: Call, run_id: str) -> ResultView:
    """The workflow's output, or the results of its last tasks; null until the run succeeds."""
    run = await find_run(call.services, call.namespace, run_id)
    return ResultView(
        id=run.id,
        state=run.state,
        ended=run.state in RUN_ENDED,
        result=await result_of(call.services, run),
        error=await error_of(call.services, run),
    )


@endpoint(
    "POST",
    "/v1/runs/{run_id}/cancel",
    permission=Permission.RUNS_CONTROL,
    summary="Stop a run",
    tag="runs",
    audit="run.cancel",
    errors=("NOT_FOUND", "UNAVAILABLE"),
)
async def cancel_run(call: Call, run_id: str) -> RunView:
    """What waits is cancelled, what runs is asked to stop. Coming too late is harmless."""
    _, after = await _steer(call, run_id, cancel, again=False)
    return after


@endpoint(
    "POST",
    "/v1/runs/{run_id}/pause",
    permission=Permission.RUNS_CONTROL,
    summary="Pause a run",
    tag="runs",
    audit="run.pause",
    errors=("NOT_FOUND", "CONFLICT", "UNAVAILABLE"),
)
async def pause_run(call: Call, run_id: str) -> RunView:
    """No further task begins; those that run go on. A run that has ended cannot be paused."""
    _, after = await _steer(call, run_id, pause, again=False)
    return after


@endpoint(
    "POST",
    "/v1/runs/{run_id}/resume",
    permission=Permission.RUNS_CONTROL,
    summary="Let a paused run go on",
    tag="runs",
    audit="run.resume",
    errors=("NOT_FOUND", "CONFLICT", "UNAVAILABLE"),
)
async def resume_run(call: Call, run_id: str) -> RunView:
    """Resuming a run that is not paused changes nothing; one that has ended is a conflict."""
    _, after = await _steer(call, run_id, resume, again=True)
    return after


@endpoint(
    "POST",
    "/v1/runs/{run_id}/retry",
    permission=Permission.RUNS_CONTROL,
    summary="Retry the failed tasks of a run",
    tag="runs",
    audit="run.retry",
    errors=("NOT_FOUND", "CONFLICT", "UNAVAILABLE"),
)
async def retry_run(call: Call, run_id: str) -> RetriedView:
    """Every failed task is tried again with fresh budgets, and the run goes on from there."""
    before, after = await _steer(call, run_id, retry_failed, again=True)
    return RetriedView(run=after, tasks=before.failed)


async def _steer(call: Call, run_id: str, act: Act, *, again: bool) -> tuple[Run, RunView]:
    """Change a run; `again` when its tasks will run again. Before, and now."""
    services = call.services
    run = await find_run(services, call.namespace, run_id)
    await services.steer(run, again)
    after = await act(services.store, services.bus, run.namespace, run.id)
    return run, await shown_run(services, after)


def _etag(run: Run, *, with_waits: bool) -> dict[str, Any]:
    """Everything in the answer follows from the row, except what the run waits for."""
    if with_waits:
        return {}
    parts = (run.state, run.generation, run.open, run.failed, run.ended, run.stop, run.quarantine)
    return {"ETag": '"' + "-".join(str(part) for part in parts).replace(" ", "") + '"'}


ENDPOINTS = (
    start_run,
    list_runs,
    get_run,
    wait_for_run,
    get_result,
    cancel_run,
    pause_run,
    resume_run,
    retry_run,
)
